import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.serde.avro.NonRecordContainer;
import io.apicurio.registry.utils.converter.avro.AvroData;
import io.apicurio.registry.utils.converter.avro.AvroDataConfig;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.SchemaAndValue;

/**
 * Reads what an Avro converter wrote with Apache Avro and with AvroData, which makes Connect's data of it, and says what it found.
 *
 * <p>AvroData is Confluent's, in the copy that Apicurio's converter has on Maven Central. Argument: {@code true} or {@code false}
 * for connect.meta.data. Standard input: one value per line, its schema and its bytes without a header in base64, with a blank between
 * them. Standard output: one line per value, a JSON object with {@code schema} and {@code value} as ConnectReader has them, {@code again},
 * the bytes that AvroData and Avro write for them (in base64), and {@code text}, the schema that AvroData makes for them.
 */
public final class AvroReader {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, org.apache.avro.Schema> SCHEMAS = new HashMap<>();

  public static void main(String[] arguments) throws Exception {
    AvroData data = new AvroData(new AvroDataConfig(Map.of("connect.meta.data", arguments[0])));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ", -1);
      String schema = new String(Base64.getDecoder().decode(parts[0]), StandardCharsets.UTF_8);
      out.println(JSON.writeValueAsString(read(data, schema, Base64.getDecoder().decode(parts[1]))));
    }
    out.flush();
  }

  private static ObjectNode read(AvroData data, String text, byte[] bytes) {
    ObjectNode found = JSON.createObjectNode();
    try {
      org.apache.avro.Schema schema = SCHEMAS.computeIfAbsent(text, each -> new org.apache.avro.Schema.Parser().parse(each));
      BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes, null);
      Object avro = new GenericDatumReader<Object>(schema).read(null, decoder);
      if (!decoder.isEnd()) {
        throw new IOException("there are bytes behind the value");
      }
      SchemaAndValue read = data.toConnectData(schema, avro);
      found.set("schema", ConnectReader.schema(read.schema()));
      ConnectReader.value(read.value(), found, "value");
      found.put("again", write(data.fromConnectSchema(read.schema()), data.fromConnectData(read.schema(), read.value())));
      found.put("text", data.fromConnectSchema(read.schema()).toString());
    } catch (RuntimeException | IOException refused) {
      found.put("error", refused.toString());
    }
    return found;
  }

  private static byte[] write(org.apache.avro.Schema schema, Object value) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
    Object datum = value instanceof NonRecordContainer<?> container ? container.getValue() : value;
    new GenericDatumWriter<Object>(schema).write(datum, encoder);
    encoder.flush();
    return out.toByteArray();
  }
}
