import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.StringConverter;

/**
 * Reads what a converter wrote with Kafka Connect's own JsonConverter, and says what it found.
 *
 * <p>Arguments: {@code true} or {@code false} for schemas.enable, {@code BASE64} or {@code NUMERIC} for decimal.format,
 * {@code true} for keys. Standard input: one value per line in base64. Standard output: one line per value, a JSON object with
 * {@code schema} and {@code value} as Connect's classes hold them, {@code again}, the bytes that Connect writes for them
 * (in base64), and {@code text}, the same by Connect's StringConverter.
 */
public final class ConnectReader {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    boolean isKey = arguments.length > 2 && Boolean.parseBoolean(arguments[2]);
    JsonConverter json = new JsonConverter();
    json.configure(Map.of("schemas.enable", arguments[0], "decimal.format", arguments[1]), isKey);
    StringConverter string = new StringConverter();
    string.configure(Map.of(), isKey);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      out.println(JSON.writeValueAsString(read(json, string, Base64.getDecoder().decode(line))));
    }
    out.flush();
  }

  private static ObjectNode read(JsonConverter json, StringConverter string, byte[] bytes) {
    ObjectNode found = JSON.createObjectNode();
    try {
      SchemaAndValue read = json.toConnectData("topic", bytes);
      found.set("schema", schema(read.schema()));
      value(read.value(), found, "value");
      found.put("again", json.fromConnectData("topic", read.schema(), read.value()));
      found.put("text", new String(string.fromConnectData("topic", read.schema(), read.value()), StandardCharsets.UTF_8));
    } catch (RuntimeException refused) {
      found.put("error", refused.toString());
    }
    return found;
  }

  static ObjectNode schema(Schema schema) {
    if (schema == null) {
      return null;
    }
    ObjectNode found = JSON.createObjectNode();
    found.put("type", schema.type().getName());
    found.put("optional", schema.isOptional());
    if (schema.name() != null) {
      found.put("name", schema.name());
    }
    if (schema.version() != null) {
      found.put("version", schema.version());
    }
    if (schema.parameters() != null) {
      schema.parameters().forEach(found.putObject("parameters")::put);
    }
    if (schema.type() == Schema.Type.STRUCT) {
      ArrayNode fields = found.putArray("fields");
      for (Field field : schema.fields()) {
        fields.addObject().put("field", field.name()).set("schema", schema(field.schema()));
      }
    }
    return found;
  }

  /** Says the class with the value, where a number or a text alone would not. */
  static void value(Object value, ObjectNode in, String name) {
    if (value == null) {
      in.putNull(name);
    } else if (value instanceof Struct struct) {
      ObjectNode found = in.putObject(name);
      for (Field field : struct.schema().fields()) {
        value(struct.get(field), found, field.name());
      }
    } else if (value instanceof Map<?, ?> map) {
      ObjectNode found = in.putObject(name);
      map.forEach((key, each) -> value(each, found, String.valueOf(key)));
    } else if (value instanceof List<?> list) {
      ObjectNode found = in.putObject(name);
      for (int at = 0; at < list.size(); at++) {
        value(list.get(at), found, String.valueOf(at));
      }
    } else if (value instanceof String text) {
      in.put(name, text);
    } else if (value instanceof Boolean flag) {
      in.put(name, flag);
    } else if (value instanceof ByteBuffer buffer) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.duplicate().get(bytes);
      in.put(name, "bytes " + HexFormat.of().formatHex(bytes));
    } else if (value instanceof byte[] bytes) {
      in.put(name, "bytes " + HexFormat.of().formatHex(bytes));
    } else if (value instanceof Date date) {
      in.put(name, "date " + date.getTime());
    } else if (value instanceof BigDecimal decimal) {
      in.put(name, "decimal " + decimal.unscaledValue() + " scale " + decimal.scale());
    } else {
      in.put(name, value.getClass().getSimpleName() + " " + value);
    }
  }
}
