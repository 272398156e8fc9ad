package conformance;

import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;

/** Changes class files: {@link Switch} is called before every access to a field, buffer or file, and replaces locks. */
public final class Interruptible {
    private static final String SWITCH = Switch.class.getName().replace('.', '/');
    private static final String LOCK = "Ljava/util/concurrent/locks/Lock;";
    private static final Set<String> BUFFERS =
        Set.of("java/nio/MappedByteBuffer", "java/nio/ByteBuffer", "java/nio/Buffer");
    /** Calls that access the memory of a buffer, which Switch replaces. */
    private static final Pattern MEMORY = Pattern.compile(
        "getInt\\(I\\)I|getLong\\(I\\)J|putInt\\(I\\).*|putLong\\(J\\).*|duplicate\\(\\).*|force\\(\\).*");
    private static final Pattern LOCKS = Pattern.compile(
        "java/util/concurrent/locks/(Lock|ReentrantLock|ReentrantReadWriteLock\\$(Read|Write)Lock)");
    private static final Pattern READ_WRITE =
        Pattern.compile("java/util/concurrent/locks/(Reentrant)?ReadWriteLock");
    /** Classes whose methods access memory or files that threads share. */
    private static final Pattern SHARED = Pattern.compile(
        "java/util/concurrent/atomic/.*|java/nio/channels/FileChannel|java/io/(File|RandomAccessFile)"
            + "|java/nio/file/Files|com/github/benmanes/caffeine/cache/Cache|java/util/concurrent/LinkedBlockingQueue"
            + "|java/util/concurrent/Concurrent(SkipList|Navigable)Map");
    private static final Pattern UNMAPPERS =
        Pattern.compile("org/apache/kafka/common/utils/(MappedByteBuffers|ByteBufferUnmapper)");

    private Interruptible() {}

    /** Returns the changed class file. */
    public static byte[] of(byte[] classFile) {
        ClassNode node = new ClassNode();
        new ClassReader(classFile).accept(node, 0);
        Set<String> unchanging = new HashSet<>();
        for (FieldNode field : node.fields)
            if ((field.access & Opcodes.ACC_FINAL) != 0)
                unchanging.add(field.name);
        for (MethodNode method : node.methods)
            if (!method.name.startsWith("<"))
                for (AbstractInsnNode instruction : method.instructions.toArray())
                    change(node, method, instruction, unchanging);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        return writer.toByteArray();
    }

    private static void change(ClassNode node, MethodNode method, AbstractInsnNode instruction, Set<String> unchanging) {
        InsnList instructions = method.instructions;
        int code = instruction.getOpcode();
        if (code == Opcodes.MONITORENTER || code == Opcodes.MONITOREXIT) {
            String name = code == Opcodes.MONITORENTER ? "enter" : "exit";
            instructions.set(instruction, callOfSwitch(name, "(Ljava/lang/Object;)V"));
            return;
        }
        String what = null;
        if (instruction instanceof FieldInsnNode field && !unchanging.contains(field.name))
            what = code == Opcodes.GETFIELD ? "read " + field.name : code == Opcodes.PUTFIELD ? "write " + field.name : null;
        if (instruction instanceof MethodInsnNode call && !call.name.equals("<init>")
            && (BUFFERS.contains(call.owner) || SHARED.matcher(call.owner).matches()))
            what = shortName(call.owner) + "." + call.name;
        if (what != null) {
            instructions.insertBefore(
                instruction, new LdcInsnNode(shortName(node.name) + "." + method.name + ": " + what));
            instructions.insertBefore(instruction, callOfSwitch("point", "(Ljava/lang/String;)V"));
        }
        if (instruction instanceof MethodInsnNode call)
            redirect(instructions, call);
    }

    /** Replaces a call that locks, unmaps or accesses the memory of a buffer by a call of Switch. */
    private static void redirect(InsnList instructions, MethodInsnNode call) {
        int end = call.desc.indexOf(')') + 1;
        String parameters = call.desc.substring(0, end);
        String result = call.desc.substring(end);
        if (READ_WRITE.matcher(call.owner).matches() && call.name.matches("(read|write)Lock")) {
            String half = result.substring(1, result.length() - 1);
            instructions.insert(call, new TypeInsnNode(Opcodes.CHECKCAST, half));
            replace(call, "(Ljava/util/concurrent/locks/ReadWriteLock;)" + LOCK);
        } else if (LOCKS.matcher(call.owner).matches() && call.name.matches("(un)?lock")) {
            replace(call, "(" + LOCK + ")V");
        } else if (UNMAPPERS.matcher(call.owner).matches() && call.name.equals("unmap")) {
            replace(call, "(Ljava/lang/String;Ljava/nio/ByteBuffer;)V");
        } else if (BUFFERS.contains(call.owner) && MEMORY.matcher(call.name + call.desc).matches()) {
            boolean mapped = call.name.equals("force") || result.contains("Mapped");
            replace(call, "(Ljava/nio/" + (mapped ? "Mapped" : "") + "ByteBuffer;" + parameters.substring(1) + result);
        }
    }

    private static void replace(MethodInsnNode call, String descriptor) {
        call.setOpcode(Opcodes.INVOKESTATIC);
        call.owner = SWITCH;
        call.desc = descriptor;
        call.itf = false;
    }

    private static MethodInsnNode callOfSwitch(String name, String descriptor) {
        return new MethodInsnNode(Opcodes.INVOKESTATIC, SWITCH, name, descriptor, false);
    }

    private static String shortName(String name) {
        return name.substring(name.lastIndexOf('/') + 1);
    }
}
