import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What stands in for Amazon MSK's side of a login with IAM: it takes the token apart, computes the signature itself from the
 * secret keys it is told, and refuses what MSK would refuse.
 *
 * <p>Options of the login module: {@code region}, and a {@code key_ID} for each access key, with its secret. Whoever signs is the
 * principal of that access key's name. Each verdict is a line of the broker's log, with the token.
 */
public final class MskIamHandler implements AuthenticateCallbackHandler {
  private static final Logger LOG = LoggerFactory.getLogger(MskIamHandler.class);
  private static final DateTimeFormatter MOMENT =
      DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
  private static final int LONGEST_SECONDS = 900;
  /** A clock may be fast by this much. */
  private static final int AHEAD_SECONDS = 300;

  private Map<String, ?> options = Map.of();

  @Override
  public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    options = entries.get(0).getOptions();
  }

  @Override
  public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
    for (Callback callback : callbacks) {
      if (callback instanceof OAuthBearerValidatorCallback asked) {
        judge(asked);
      } else if (callback instanceof OAuthBearerTokenCallback own) {
        // The broker itself signs in nowhere.
        own.token(null);
      } else {
        throw new UnsupportedCallbackException(callback);
      }
    }
  }

  @Override
  public void close() {}

  private void judge(OAuthBearerValidatorCallback asked) {
    String token = asked.tokenValue();
    try {
      asked.token(accept(token));
      LOG.warn("token accepted {}", token);
    } catch (IllegalArgumentException | GeneralSecurityException refused) {
      LOG.warn("token refused {}: {}", token, refused.getMessage());
      asked.error("invalid_token", null, null);
    }
  }

  private OAuthBearerToken accept(String token) throws GeneralSecurityException {
    String address = new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8);
    URI uri = URI.create(address);
    String region = (String) options.get("region");
    String host = "kafka." + region + ".amazonaws.com";
    expect("scheme", "https", uri.getScheme());
    expect("host", host, uri.getHost());
    expect("path", "/", uri.getPath());
    TreeMap<String, String> query = new TreeMap<>();
    for (String pair : uri.getRawQuery().split("&")) {
      String[] halves = pair.split("=", 2);
      if (query.put(decoded(halves[0]), decoded(halves[1])) != null) {
        throw new IllegalArgumentException("a parameter twice: " + halves[0]);
      }
    }
    if (query.remove("User-Agent") == null) {
      throw new IllegalArgumentException("no User-Agent");
    }
    String signature = query.remove("X-Amz-Signature");
    expect("Action", "kafka-cluster:Connect", query.get("Action"));
    expect("X-Amz-Algorithm", "AWS4-HMAC-SHA256", query.get("X-Amz-Algorithm"));
    expect("X-Amz-SignedHeaders", "host", query.get("X-Amz-SignedHeaders"));
    Set<String> known =
        Set.of("Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token", "X-Amz-SignedHeaders");
    if (!known.containsAll(query.keySet())) {
      throw new IllegalArgumentException("unknown parameters: " + query.keySet());
    }
    String moment = query.get("X-Amz-Date");
    long signed = Instant.from(MOMENT.parse(moment)).getEpochSecond();
    int life = Integer.parseInt(query.get("X-Amz-Expires"));
    long now = Instant.now().getEpochSecond();
    if (life > LONGEST_SECONDS || signed > now + AHEAD_SECONDS || now >= signed + life) {
      throw new IllegalArgumentException("signed at " + moment + " for " + life + " s, and it is " + MOMENT.format(Instant.now()));
    }
    String[] scope = query.get("X-Amz-Credential").split("/", 2);
    String day = moment.substring(0, 8);
    expect("scope", day + "/" + region + "/kafka-cluster/aws4_request", scope[1]);
    String secret = (String) options.get("key_" + scope[0]);
    if (secret == null) {
      throw new IllegalArgumentException("unknown access key " + scope[0]);
    }
    expect("X-Amz-Signature", signature(query, host, moment, day, region, secret), signature);
    return accepted(token, scope[0], signed * 1000, (signed + life) * 1000);
  }

  /** Signature Version 4, as AWS's documentation writes it down. */
  private static String signature(
      TreeMap<String, String> query, String host, String moment, String day, String region, String secret)
      throws GeneralSecurityException {
    StringBuilder canonicalQuery = new StringBuilder();
    query.forEach((name, value) -> canonicalQuery.append(canonicalQuery.isEmpty() ? "" : "&").append(encoded(name)).append('=').append(encoded(value)));
    String request = "GET\n/\n" + canonicalQuery + "\nhost:" + host + "\n\nhost\n" + sha256("");
    String scope = day + "/" + region + "/kafka-cluster/aws4_request";
    String text = "AWS4-HMAC-SHA256\n" + moment + "\n" + scope + "\n" + sha256(request);
    byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
    for (String part : List.of(day, region, "kafka-cluster", "aws4_request")) {
      key = hmac(key, part);
    }
    return HexFormat.of().formatHex(hmac(key, text));
  }

  private static byte[] hmac(byte[] key, String text) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  private static String sha256(String text) throws GeneralSecurityException {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text, StandardCharsets.UTF_8);
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }

  private static void expect(String what, String expected, String found) {
    if (!expected.equals(found)) {
      throw new IllegalArgumentException(what + " is " + found + " and not " + expected);
    }
  }

  private static OAuthBearerToken accepted(String value, String principal, long start, long end) {
    return new OAuthBearerToken() {
      @Override
      public String value() {
        return value;
      }

      @Override
      public Set<String> scope() {
        return Set.of();
      }

      @Override
      public long lifetimeMs() {
        return end;
      }

      @Override
      public String principalName() {
        return principal;
      }

      @Override
      public Long startTimeMs() {
        return start;
      }
    };
  }
}
