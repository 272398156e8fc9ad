package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.LineNumberNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Instructions of a class file that an operator can change, and the class file with one of them changed.
 *
 * <p>No change needs other stack maps: the types on the stack are the same at every label.
 */
public final class Sites {
    private static final String[] JUMPS = ("ifeq ifne iflt ifge ifgt ifle if_icmpeq if_icmpne if_icmplt if_icmpge if_icmpgt"
        + " if_icmple if_acmpeq if_acmpne").split(" ");
    private static final String[] CALCULATIONS = ("iadd ladd fadd dadd isub lsub fsub dsub imul lmul fmul dmul idiv ldiv fdiv"
        + " ddiv irem lrem frem drem ineg lneg fneg dneg ishl lshl ishr lshr iushr lushr iand land ior lor ixor lxor").split(" ");
    /** For each kind of calculation (by fours, then by pairs from the shifts on), the distance to its replacement. */
    private static final int[] BY_FOURS = {4, -4, 4, -4, -8};
    private static final int[] BY_PAIRS = {2, -2, -4, 2, -2, -4};
    private static final Pattern LOGGING = Pattern.compile("org/slf4j/Logger|kafka/utils/Logging.*|scala/.*Logg.*");
    private static final Pattern METRICS = Pattern.compile("(?i).*(?:metric|gauge|sensor|yammer).*");
    private static final Pattern UNUSED = Pattern.compile(
        "toString|equals|hashCode|values|valueOf|canEqual|productPrefix|productElement.*|(?i:.*(?:metric|gauge|sensor).*)");
    private static final Pattern LAMBDA = Pattern.compile("lambda\\$(.+)\\$\\d+|\\$anonfun\\$(.+)\\$\\d+(?:\\$adapted)?");

    private final byte[] bytes;
    private final List<Site> sites = new ArrayList<>();

    /** Place: the number of the method in the class, and of the instruction in the method. */
    private record Site(int method, int instruction, String operator, String text) {}

    public Sites(byte[] bytes) {
        this.bytes = bytes;
        ClassNode node = read();
        for (int method = 0; method < node.methods.size(); method++)
            if (isUsed(node, node.methods.get(method)))
                find(method, node.methods.get(method));
    }

    private ClassNode read() {
        ClassNode node = new ClassNode();
        new ClassReader(bytes).accept(node, 0);
        return node;
    }

    private static byte[] written(ClassNode node) {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        return writer.toByteArray();
    }

    private static boolean isUsed(ClassNode node, MethodNode method) {
        boolean made = (method.access & Opcodes.ACC_SYNTHETIC) != 0 && !LAMBDA.matcher(method.name).matches();
        boolean lists = (node.access & Opcodes.ACC_ENUM) != 0 && method.name.equals("<clinit>");
        return !made && !lists && !UNUSED.matcher(name(method)).matches();
    }

    /** Returns the name of a method; of a lambda, the name of the method around it, because javac numbers lambdas. */
    private static String name(MethodNode method) {
        java.util.regex.Matcher lambda = LAMBDA.matcher(method.name);
        return !lambda.matches() ? method.name : lambda.group(1) == null ? lambda.group(2) : lambda.group(1);
    }

    // -- sites -----------------------------------------------------------------------------------------------------

    private void find(int number, MethodNode method) {
        AbstractInsnNode[] all = method.instructions.toArray();
        boolean[] excluded = new boolean[all.length];
        for (int i = 0; i < all.length; i++)
            exclude(all, i, excluded);
        String line = "0";
        List<String> named = new ArrayList<>();
        for (int i = 0; i < all.length; i++) {
            AbstractInsnNode each = all[i];
            if (each instanceof LineNumberNode marker) {
                if (!line.equals(String.valueOf(marker.line)))
                    named.clear();
                line = String.valueOf(marker.line);
            }
            if (!excluded[i]) {
                String context = String.join(" ", named.subList(Math.max(0, named.size() - 2), named.size()));
                for (String[] found : changesOf(method, each))
                    sites.add(new Site(number, i, found[0], String.join("\t",
                        name(method), method.desc, found[0], found[1], context, line)));
            }
            if (each instanceof MethodInsnNode call)
                named.add(call.name);
            else if (each instanceof FieldInsnNode field)
                named.add(field.name);
        }
    }

    /** Excludes what only logs and metrics use, and the sizes and places of arrays that the compiler makes. */
    private static void exclude(AbstractInsnNode[] all, int at, boolean[] excluded) {
        if (all[at] instanceof MethodInsnNode call && isUnseen(call.owner)) {
            String type = "L" + call.owner + ";";
            int start = at;
            while (start > 0 && !gives(all[start], type))
                start--;
            boolean found = gives(all[start], type);
            for (int i = found ? start : at; i <= at; i++)
                excluded[i] = true;
            if (at + 1 < all.length && all[at + 1] instanceof JumpInsnNode)  // isDebugEnabled
                excluded[at + 1] = true;
        }
        AbstractInsnNode next = all[at].getNext();
        if (next != null && next.getOpcode() == Opcodes.ANEWARRAY)
            excluded[at] = true;
        AbstractInsnNode before = all[at].getPrevious();
        if (before != null && before.getOpcode() == Opcodes.DUP && before.getPrevious() != null
            && (before.getPrevious().getOpcode() == Opcodes.ANEWARRAY || before.getPrevious().getOpcode() == Opcodes.AASTORE))
            excluded[at] = true;
    }

    private static boolean isUnseen(String owner) {
        return LOGGING.matcher(owner).matches() || METRICS.matcher(owner).matches();
    }

    private static boolean gives(AbstractInsnNode each, String type) {
        return each instanceof FieldInsnNode field && field.desc.equals(type)
            || each instanceof MethodInsnNode call && call.desc.endsWith(")" + type);
    }

    /** Returns operator and text of each change of an instruction. */
    private static List<String[]> changesOf(MethodNode method, AbstractInsnNode each) {
        List<String[]> found = new ArrayList<>();
        int code = each.getOpcode();
        if (each instanceof JumpInsnNode && code != Opcodes.GOTO && code != Opcodes.JSR) {
            found.add(new String[] {"negated", jump(code) + " -> " + jump(negated(code))});
            if (code >= Opcodes.IFLT && code <= Opcodes.IFLE || code >= Opcodes.IF_ICMPLT && code <= Opcodes.IF_ICMPLE)
                found.add(new String[] {"boundary", jump(code) + " -> " + jump(shifted(code))});
        } else if (constant(each) != null) {
            found.add(new String[] {"constant", constant(each) + " -> " + next(constant(each))});
        } else if (code >= Opcodes.IADD && code <= Opcodes.LXOR) {
            String by = isNegation(code) ? "nothing" : CALCULATIONS[replaced(code) - Opcodes.IADD];
            found.add(new String[] {"arithmetic", CALCULATIONS[code - Opcodes.IADD] + " -> " + by});
        } else if (each instanceof IincInsnNode increment) {
            found.add(new String[] {"increment", increment.incr + " -> " + -increment.incr});
        } else if ((code == Opcodes.IRETURN || code == Opcodes.LRETURN) && constant(each.getPrevious()) == null) {
            found.add(new String[] {"return", method.desc.endsWith("Z") ? "the other boolean" : "plus 1"});
        } else if (each instanceof MethodInsnNode call && call.desc.endsWith(")V") && !call.name.equals("<init>")) {
            found.add(new String[] {"call", "no " + call.name});
        }
        return found;
    }

    private static Number constant(AbstractInsnNode each) {
        if (each == null)
            return null;
        int code = each.getOpcode();
        if (code >= Opcodes.ICONST_M1 && code <= Opcodes.ICONST_5)
            return code - Opcodes.ICONST_0;
        if (code == Opcodes.LCONST_0 || code == Opcodes.LCONST_1)
            return (long) (code - Opcodes.LCONST_0);
        if (each instanceof IntInsnNode pushed && code != Opcodes.NEWARRAY)
            return pushed.operand;
        if (each instanceof LdcInsnNode loaded && (loaded.cst instanceof Integer || loaded.cst instanceof Long))
            return (Number) loaded.cst;
        return null;
    }

    /** Returns another constant: 0 for 1, because many are booleans, and else the next number. */
    private static Number next(Number constant) {
        if (constant instanceof Long number)
            return number == 1 ? 0 : number + 1;
        return constant.intValue() == 1 ? 0 : constant.intValue() + 1;
    }

    private static boolean isNegation(int code) {
        return code >= Opcodes.INEG && code <= Opcodes.DNEG;
    }

    private static int replaced(int code) {
        int fours = (code - Opcodes.IADD) / 4;
        return code < Opcodes.INEG ? code + BY_FOURS[fours] : code + BY_PAIRS[(code - Opcodes.ISHL) / 2];
    }

    private static int negated(int code) {
        if (code >= Opcodes.IFNULL)
            return code ^ 1;  // 198 and 199
        return (code - Opcodes.IFEQ ^ 1) + Opcodes.IFEQ;
    }

    /** Returns the jump that also includes, or no longer includes, equal numbers: lt and le, ge and gt. */
    private static int shifted(int code) {
        return switch (code) {
            case Opcodes.IFLT -> Opcodes.IFLE;
            case Opcodes.IFLE -> Opcodes.IFLT;
            case Opcodes.IFGE -> Opcodes.IFGT;
            case Opcodes.IFGT -> Opcodes.IFGE;
            case Opcodes.IF_ICMPLT -> Opcodes.IF_ICMPLE;
            case Opcodes.IF_ICMPLE -> Opcodes.IF_ICMPLT;
            case Opcodes.IF_ICMPGE -> Opcodes.IF_ICMPGT;
            default -> Opcodes.IF_ICMPGE;
        };
    }

    private static String jump(int code) {
        return code >= Opcodes.IFNULL ? (code == Opcodes.IFNULL ? "ifnull" : "ifnonnull") : JUMPS[code - Opcodes.IFEQ];
    }

    // -- results ---------------------------------------------------------------------------------------------------

    /** Returns for each site, separated by tabs: method, descriptor, operator, change, names before it, line. */
    public String[] rows() {
        return sites.stream().map(Site::text).toArray(String[]::new);
    }

    /** Returns the class file with a call of {@link Reach} before each site; the number of the first one is given. */
    public byte[] watched(int first) {
        ClassNode node = read();
        AbstractInsnNode[][] all = node.methods.stream().map(each -> each.instructions.toArray()).toArray(AbstractInsnNode[][]::new);
        for (int i = 0; i < sites.size(); i++) {
            Site site = sites.get(i);
            InsnList call = new InsnList();
            call.add(new LdcInsnNode(first + i));
            call.add(new MethodInsnNode(Opcodes.INVOKESTATIC, "conformance/Reach", "at", "(I)V", false));
            node.methods.get(site.method).instructions.insertBefore(all[site.method][site.instruction], call);
        }
        return written(node);
    }

    /** Returns the class file with one site changed. */
    public byte[] changed(int number) {
        Site site = sites.get(number);
        ClassNode node = read();
        MethodNode method = node.methods.get(site.method);
        change(method, method.instructions.get(site.instruction), site.operator);
        return written(node);
    }

    private static void change(MethodNode method, AbstractInsnNode each, String operator) {
        InsnList list = method.instructions;
        int code = each.getOpcode();
        switch (operator) {
            case "negated" -> ((JumpInsnNode) each).setOpcode(negated(code));
            case "boundary" -> ((JumpInsnNode) each).setOpcode(shifted(code));
            case "constant" -> list.set(each, new LdcInsnNode(boxed(next(constant(each)), constant(each))));
            case "arithmetic" -> list.set(each, new InsnNode(isNegation(code) ? Opcodes.NOP : replaced(code)));
            case "increment" -> ((IincInsnNode) each).incr *= -1;
            case "return" -> {
                boolean isLong = code == Opcodes.LRETURN;
                list.insertBefore(each, new InsnNode(isLong ? Opcodes.LCONST_1 : Opcodes.ICONST_1));
                list.insertBefore(each, new InsnNode(
                    isLong ? Opcodes.LADD : method.desc.endsWith("Z") ? Opcodes.IXOR : Opcodes.IADD));
            }
            default -> drop(list, (MethodInsnNode) each);
        }
    }

    private static Number boxed(Number value, Number like) {
        return like instanceof Long ? (Number) value.longValue() : (Number) value.intValue();
    }

    private static void drop(InsnList list, MethodInsnNode call) {
        Type[] arguments = Type.getArgumentTypes(call.desc);
        for (int i = arguments.length - 1; i >= 0; i--)
            list.insertBefore(call, new InsnNode(arguments[i].getSize() == 2 ? Opcodes.POP2 : Opcodes.POP));
        list.set(call, new InsnNode(call.getOpcode() == Opcodes.INVOKESTATIC ? Opcodes.NOP : Opcodes.POP));
    }
}
