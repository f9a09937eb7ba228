"""The code of the pool of threads: workers, handing out the parts of a loop, and calls of BLAS without its threads."""

from __future__ import annotations

from fad.compile.codegen.llvm.module import CONTROL, Module
from fad.compile.machine.thread_pool import WORDS

_SPINS = 4000  # looks at the ticket, some 40 ns each, before a worker goes to sleep: waking it takes as long
# Cycles between two looks after which it was not running: it may share a CPU with the caller while another is idle. It
# sleeps then, for the system finds a free CPU for a thread that it wakes, but may leave one that is awake where it is.
_AWAY = 500_000


def _field(name: str, word: str) -> str:
    return f"  %{name} = getelementptr i8, ptr %S, i64 {WORDS[word]}"


def _function(name: str, word: str) -> list[str]:
    return [_field(f"{name}_at", word), f"  %{name} = load ptr, ptr %{name}_at"]


def _take_parts(tag: str, begin: str, out: str) -> list[str]:
    """Take parts and run them until none is left."""
    return [
        f"  br label %take{tag}", f"take{tag}:", f"  %t{tag} = atomicrmw sub ptr %ticket, i64 1 seq_cst",
        f"  %some{tag} = icmp sgt i64 %t{tag}, 0", f"  br i1 %some{tag}, label %part{tag}, label %{out}",
        f"part{tag}:", f"  %n{tag} = load i64, ptr %count", f"  %k{tag} = sub i64 %n{tag}, %t{tag}",
        f"  %size{tag} = load i64, ptr %size", f"  %o{tag} = mul i64 %k{tag}, %size{tag}",
        f"  %rows{tag} = load ptr, ptr %rows", f"  %row{tag} = getelementptr i8, ptr %rows{tag}, i64 %o{tag}",
        f"  %code{tag} = load ptr, ptr %code", f"  %r{tag} = call i32 %code{tag}(ptr %row{tag})",
        f"  %d{tag} = atomicrmw add ptr %done, i64 1 seq_cst", f"  br label %take{tag}",
    ]  # fmt: skip


def pool_module() -> Module:
    """Return the module of the pool: ``pool_run`` takes a row of count, function, words of a part, pool, parts."""
    fields = [_field(w, w) for w in ("ticket", "done", "sleepers", "code", "rows", "size", "count", "mutex")]
    fields.append(_field("condition", "condition"))
    return Module("\n".join([*_worker(fields), *_start(), *_run(fields), ""]), CONTROL)


def _worker(fields: list[str]) -> list[str]:
    clock = "call i64 @llvm.readcyclecounter()" if _is_x86() else "add i64 0, 0"
    return [
        "declare void @llvm.x86.sse2.pause()\ndeclare i64 @llvm.readcyclecounter()" if _is_x86() else "",
        "define internal ptr @worker(ptr %S) {", "entry:", *fields,
        *_function("lock", "lock"), *_function("unlock", "unlock"), *_function("wait", "wait"),
        "  br label %idle", "idle:", f"  %begun = {clock}", "  br label %spin", "spin:",
        "  %i = phi i64 [0, %idle], [%i1, %again]", "  %last = phi i64 [%begun, %idle], [%time, %again]",
        "  %now = load atomic i64, ptr %ticket monotonic, align 8",
        "  %ready = icmp sgt i64 %now, 0", "  br i1 %ready, label %work, label %again", "again:",
        "  call void @llvm.x86.sse2.pause()" if _is_x86() else "", "  %i1 = add i64 %i, 1",
        f"  %time = {clock}", "  %gap = sub i64 %time, %last", f"  %away = icmp ugt i64 %gap, {_AWAY}",
        f"  %long = icmp ugt i64 %i1, {_SPINS}", "  %tired = or i1 %long, %away",
        "  br i1 %tired, label %sleep, label %spin",
        "sleep:", "  %l = call i32 %lock(ptr %mutex)", "  %s1 = atomicrmw add ptr %sleepers, i64 1 seq_cst",
        "  br label %look", "look:", "  %then = load atomic i64, ptr %ticket seq_cst, align 8",
        "  %woken = icmp sgt i64 %then, 0", "  br i1 %woken, label %rise, label %rest",
        "rest:", "  %w = call i32 %wait(ptr %condition, ptr %mutex)", "  br label %look",
        "rise:", "  %s2 = atomicrmw sub ptr %sleepers, i64 1 seq_cst", "  %u = call i32 %unlock(ptr %mutex)",
        "  br label %work", "work:", *_take_parts("w", "work", "idle"), "}", "",
    ]  # fmt: skip


def _start() -> list[str]:
    """Start the threads that are wanted and not there yet; one that the system refuses is not asked for again."""
    return [
        "define internal void @start(ptr %S) noinline {", "entry:", "  %id = alloca i64", _field("started", "started"),
        _field("wanted", "wanted"), *_function("create", "create"), *_function("detach", "detach"),
        "  br label %look", "look:", "  %n = load i64, ptr %started", "  %m = load i64, ptr %wanted",
        "  %few = icmp slt i64 %n, %m", "  br i1 %few, label %make, label %out",
        "make:", "  %r = call i32 %create(ptr %id, ptr null, ptr @worker, ptr %S)", "  %ok = icmp eq i32 %r, 0",
        "  br i1 %ok, label %good, label %refused", "good:", "  %t = load i64, ptr %id",
        "  %d = call i32 %detach(i64 %t)", "  %n1 = add i64 %n, 1", "  store i64 %n1, ptr %started", "  br label %look",
        "refused:", "  store i64 %n, ptr %wanted", "  br label %out", "out:", "  ret void", "}", "",
    ]  # fmt: skip


def _run(fields: list[str]) -> list[str]:
    head = ["define i32 @pool_run(ptr %W) {", "entry:"]
    row = (("n", "i64"), ("f", "ptr"), ("len", "i64"), ("S", "ptr"))
    for k, (name, kind) in enumerate(row):
        head += [f"  %{name}_at = getelementptr i64, ptr %W, i64 {k}", f"  %{name} = load {kind}, ptr %{name}_at"]
    head += [f"  %R = getelementptr i64, ptr %W, i64 {len(row)}", "  %bytes = mul i64 %len, 8", *fields]
    return [
        *head, _field("busy", "busy"), _field("wanted", "wanted"), *_function("lock", "lock"),
        *_function("unlock", "unlock"), *_function("wake", "wake"), *_function("yield", "yield"),
        "  %others = load i64, ptr %wanted", "  %many = icmp sgt i64 %others, 0",
        "  br i1 %many, label %try, label %alone",
        # another of Python's threads may be using the pool: then this one does its parts alone
        "try:", "  %x = cmpxchg ptr %busy, i64 0, i64 1 seq_cst monotonic", "  %mine = extractvalue {i64, i1} %x, 1",
        "  br i1 %mine, label %shared, label %alone",
        "alone:", "  %k = phi i64 [0, %entry], [0, %try], [%k1, %alone]", "  %ko = mul i64 %k, %bytes",
        "  %row = getelementptr i8, ptr %R, i64 %ko", "  %r = call i32 %f(ptr %row)", "  %k1 = add i64 %k, 1",
        "  %left = icmp ult i64 %k1, %n", "  br i1 %left, label %alone, label %end", "end:", "  ret i32 0",
        "shared:", "  call void @start(ptr %S)", "  store i64 %n, ptr %count", "  store ptr %f, ptr %code",
        "  store ptr %R, ptr %rows", "  store i64 %bytes, ptr %size",
        "  store atomic i64 0, ptr %done seq_cst, align 8", "  store atomic i64 %n, ptr %ticket seq_cst, align 8",
        "  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8", "  %any = icmp sgt i64 %asleep, 0",
        "  br i1 %any, label %rouse, label %work", "rouse:", "  %l = call i32 %lock(ptr %mutex)",
        "  %b = call i32 %wake(ptr %condition)", "  %u = call i32 %unlock(ptr %mutex)", "  br label %work",
        "work:", *_take_parts("m", "work", "join"), "join:", "  br label %watch", "watch:",
        "  %c = phi i64 [0, %join], [%c1, %pause]", "  %now = load atomic i64, ptr %done seq_cst, align 8",
        "  %all = icmp sge i64 %now, %n", "  br i1 %all, label %over, label %pause",
        "pause:", "  call void @llvm.x86.sse2.pause()" if _is_x86() else "", "  %c1 = add i64 %c, 1",
        f"  %long = icmp ugt i64 %c1, {_SPINS}", "  br i1 %long, label %give, label %watch",
        "give:", "  %y = call i32 %yield()", "  %again = load atomic i64, ptr %done seq_cst, align 8",
        "  %fin = icmp sge i64 %again, %n", "  br i1 %fin, label %over, label %give",
        "over:", "  store atomic i64 0, ptr %busy seq_cst, align 8", "  ret i32 0", "}",
    ]  # fmt: skip


def quiet_call(call: list[str]) -> list[str]:
    """Return how BLAS is called, by these lines, with no threads of its own; %S is the pool, or null.

    Those of OpenBLAS wait awake for their next product, and would share the CPUs with the pool's for all that time; and
    with them the last bits depend on their number. The first of those who call tells it, and the last one tells it
    to use as many again as before.
    """

    def lock(tag: str, count: str, edge: str, then: list[str]) -> list[str]:
        return [
            f"  br label %lock{tag}", f"lock{tag}:", f"  %x{tag} = cmpxchg ptr %hush, i64 0, i64 1 seq_cst monotonic",
            f"  %got{tag} = extractvalue {{i64, i1}} %x{tag}, 1",
            f"  br i1 %got{tag}, label %in{tag}, label %give{tag}", f"give{tag}:", f"  %y{tag} = call i32 %yield()",
            f"  br label %lock{tag}", f"in{tag}:",
            f"  %old{tag} = load i64, ptr %callers", f"  %new{tag} = add i64 %old{tag}, {count}",
            f"  store i64 %new{tag}, ptr %callers", f"  %edge{tag} = icmp eq i64 {edge}, 0",
            f"  br i1 %edge{tag}, label %tell{tag}, label %free{tag}", f"tell{tag}:", *then,
            f"  br label %free{tag}", f"free{tag}:", "  store atomic i64 0, ptr %hush seq_cst, align 8",
        ]  # fmt: skip

    first = ["  %loud = call i32 %get_threads()", "  store i32 %loud, ptr %before", "  call void %set_threads(i32 1)"]
    last = ["  %again = load i32, ptr %before", "  call void %set_threads(i32 %again)"]
    words = [*[_field(w, w) for w in ("hush", "callers", "before")], *_function("yield", "yield")]
    return [
        "  %tellable = icmp ne ptr %S, null", "  br i1 %tellable, label %still, label %plain",
        "plain:", *call, "  ret void", "still:", *words, *_function("get_threads", "get_threads"),
        *_function("set_threads", "set_threads"), *lock("a", "1", "%olda", first), *call,
        *lock("z", "-1", "%newz", last), "  ret void",
    ]  # fmt: skip


def _is_x86() -> bool:
    import platform

    return platform.machine().lower() in ("x86_64", "amd64", "i686")
