// Gives a user one right on one topic: `Allow.java BOOTSTRAP USER OPERATION TOPIC`.
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

class Allow {
    public static void main(String[] given) throws Exception {
        var entry = new AccessControlEntry("User:" + given[1], "*", AclOperation.fromString(given[2]), AclPermissionType.ALLOW);
        var topic = new ResourcePattern(ResourceType.TOPIC, given[3], PatternType.LITERAL);
        try (var admin = Admin.create(Map.of("bootstrap.servers", given[0]))) {
            admin.createAcls(List.of(new AclBinding(topic, entry))).all().get();
        }
    }
}
