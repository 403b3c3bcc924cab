import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * What whoever runs a cluster does to its users, and librdkafka's wrapper cannot.
 *
 * <p>{@code BOOTSTRAP password USER PASSWORD} sets a user's password for SCRAM-SHA-512. {@code BOOTSTRAP allow USER TOPIC
 * OPERATION…} lets a user do that to a topic.
 */
public final class BrokerAdmin {
  public static void main(String[] arguments) throws Exception {
    List<String> rest = List.of(arguments).subList(2, arguments.length);
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
      switch (arguments[1]) {
        case "password" -> {
          ScramCredentialInfo how = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096);
          admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(rest.get(0), how, rest.get(1)))).all().get();
        }
        case "allow" -> {
          ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, rest.get(1), PatternType.LITERAL);
          List<AclBinding> acls = rest.subList(2, rest.size()).stream().map(operation -> acl(topic, rest.get(0), operation)).toList();
          admin.createAcls(acls).all().get();
        }
        default -> throw new IllegalArgumentException(arguments[1]);
      }
    }
  }

  private static AclBinding acl(ResourcePattern resource, String user, String operation) {
    AclOperation what = AclOperation.fromString(operation);
    return new AclBinding(resource, new AccessControlEntry("User:" + user, "*", what, AclPermissionType.ALLOW));
  }
}
