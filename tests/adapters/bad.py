"""Adapters that break the line protocol, each in one way: ``bad.py NAME``, such as ``dies_on_close``."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

from line_index import Adapter

WORDS = f"\x1b[2J\x1b[H\r\n{os.environ.get('VERDICT', 'conforms')}\n"


class Bad(Adapter):
    kinds = ("offset",)


class Banner(Bad):
    """Adapter that prints a banner before the first request."""

    def run(self):
        sys.stdout.write("Welcome to my index 1.0\n")
        super().run()


class BareState(Bad):
    """Adapter that omits whether the index is full from its state, after every operation except the first ones."""

    def reply_to(self, request):
        self.truncated = getattr(self, "truncated", False) or request["op"] == "truncate_to"
        return super().reply_to(request)

    def state(self):
        state = super().state()
        if self.truncated:
            state.pop("full", None)
        return state


class Chatty(Bad):
    """Adapter that replies to every append twice."""

    copies = 1

    def reply_to(self, request):
        self.copies = 2 if "append" in request["op"] else 1
        return super().reply_to(request)

    def send(self, text):
        super().send(text * self.copies)  # in one piece: a reader of the one sees the other


class CorruptByClass(Bad):
    """Adapter that reports the exception class for a corrupt file, instead of the kind of error."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {**reply, "error": "CorruptIndexException"} if reply.get("error") == "corrupt" else reply


class Dies(Bad):
    """Adapter that dies on its third request."""

    requests = 0

    def reply_to(self, request):
        self.requests += 1
        if self.requests == 3:
            sys.stderr.write("panic: index out of range [5] with length 5\n")
            sys.exit(3)
        return super().reply_to(request)


class DiesOfCorruption(Bad):
    """Adapter that dies of a corrupt file."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        if reply.get("error") == "corrupt":
            sys.exit("uncaught: corrupt index")
        return reply


class DiesOnClose(Bad):
    """Adapter that dies on close."""

    def reply_to(self, request):
        if request["op"] == "close":
            sys.exit("could not close")
        return super().reply_to(request)


class Doubles(Bad):
    """Adapter with numbers in doubles, written as integers: right up to 2**53."""

    largest = 2**63 - 1024

    def parse(self, line):
        request = json.loads(line, parse_int=float)
        return {name: self.whole(value) if isinstance(value, float) else value for name, value in request.items()}

    def whole(self, number):
        return max(-(2**63), min(self.largest, int(number)))


class Elsewhere(Bad):
    """Adapter that writes its files to another directory."""

    def open(self, kind, path, *arguments, **named):
        directory = Path(path).parents[1] / "elsewhere"
        directory.mkdir(exist_ok=True)
        path = directory / Path(path).name
        path.unlink(missing_ok=True)
        super().open(kind, str(path), *arguments, **named)


class Exponents(Bad):
    """Adapter with numbers in doubles, the large ones written with an exponent, as Go does with untyped numbers."""

    def write(self, reply):
        self.send(re.sub(r"\d{17,}", lambda found: f"{float(found[0]):e}", json.dumps(reply)) + "\n")


class Floats(Bad):
    """Adapter with numbers in doubles, written with a fraction."""

    def parse(self, line):
        return {k: int(v) if isinstance(v, float) else v for k, v in json.loads(line, parse_int=float).items()}

    def reply_to(self, request):
        reply = super().reply_to(request)
        if isinstance(reply.get("ok"), tuple):
            reply["ok"] = [float(number) for number in reply["ok"]]
        return reply


class Forges(Bad):
    """Adapter that dies in a lookup, a truncation, or immediately; its last output looks like a conforming run."""

    def reply_to(self, request):
        if request["op"] in ("lookup", "truncate"):
            sys.stderr.write(WORDS)
            sys.exit(3)
        return super().reply_to(request)


class Garbage(Bad):
    """Adapter that prints a debugging line to stdout after its reply to a lookup."""

    def write(self, reply):
        found = reply.get("ok")
        # In one piece: a reader of the reply sees the rest.
        self.send(
            f"{json.dumps(reply)}\nDEBUG found {found}\n" if isinstance(found, tuple) else f"{json.dumps(reply)}\n"
        )


class Hangs(Bad):
    """Adapter that never replies to a lookup, nor to anything after it."""

    def reply_to(self, request):
        if request["op"] in ("lookup", "collect_aborted"):
            sys.stderr.write("waiting for a lock\n")
            while True:
                signal.pause()
        return super().reply_to(request)


class Late(Bad):
    """Adapter that replies to a request when the next one arrives: it reads one line ahead."""

    def run(self):
        lines = iter(sys.stdin)
        self.write(self.reply_to(self.parse(next(lines))))
        held = None
        for line in lines:
            if held is not None:
                self.write(self.reply_to(self.parse(held)))
            held = line


class Mute(Bad):
    """Adapter that reads its input and never replies."""

    def write(self, _):
        sys.stderr.write("not telling\n")


class NullDelete(Bad):
    """Adapter that returns null instead of whether the file existed, as long as the index is open."""

    def reply_to(self, request):
        deletes_open = request["op"] == "delete" and self.index is not None
        reply = super().reply_to(request) if request["op"] != "delete" or deletes_open else {"error": "closed"}
        if request["op"] in ("close", "delete"):
            self.index = None
        if self.index is None and request["op"] == "state":
            return {"error": "closed"}
        return {"ok": None} if deletes_open else reply

    def answer(self, operation, request):
        if operation == "state" and self.index is None:
            return {"error": "closed"}
        return super().answer(operation, request)


class NullResize(Bad):
    """Adapter that returns null instead of whether the file was resized."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"ok": None} if request["op"] == "resize" else reply


class Obliging(Bad):
    """Adapter that returns ok for an operation that it does not implement."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"ok": None} if "unsupported" in reply else reply


class Saturates(Doubles):
    """Adapter with numbers in doubles, converted as Java and Rust do: the largest long survives."""

    largest = 2**63 - 1


class Segfaults(Bad):
    """Adapter that is killed by a signal when it truncates."""

    def reply_to(self, request):
        if request["op"] == "truncate_to":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().reply_to(request)


class Stays(Bad):
    """Adapter that does not exit: neither on stop nor at the end of its input."""

    def run(self):
        super().run()
        while True:
            signal.pause()


class TalkativeFlush(Bad):
    """Adapter that returns true for an operation without a result."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"ok": True} if request["op"] == "flush" else reply


class UnknownKind(Bad):
    """Adapter that reports a kind of error that the protocol does not have."""

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"error": "IllegalArgumentException", "message": "no"} if "error" in reply else reply


if __name__ == "__main__":
    if "--at-once" in sys.argv:
        sys.exit(WORDS)
    globals()[sys.argv[1].title().replace("_", "")]().run()
