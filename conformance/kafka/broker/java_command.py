"""Command lines that run a release's classes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from conformance.kafka.broker.config import JVM_OPTIONS, logging_configuration
from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import load_release
from kidx.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Step


class JavaCommand:
    """Command that runs a main class of a release or a build.

    The constructor writes the logging configuration and the JVM's arguments into ``directory``. ``more_jars`` are
    at the end of the class path.

    Raises:
        ToolError: the release does not exist, Java is missing, or a jar cannot be fetched.
    """

    def __init__(
        self,
        release: str,
        directory: Path,
        progress: Callable[[Step], None] | None = None,
        build: Build | None = None,
        more_jars: Iterable[Path] = (),
    ) -> None:
        jars: Iterable[Path] = class_path(release, "broker", progress=progress) if build is None else build.jars
        logging = load_release(release).logging if build is None else build.logging
        configuration, text, option = logging_configuration(logging, directory)
        configuration.write_text(text, "utf-8")
        # An @-file keeps the class path of fifty jars out of the command line.
        arguments = directory / "java.args"
        arguments.write_text(java_arguments([*jars, *more_jars], option), "utf-8")
        self._java = find_java().executable
        self._arguments = arguments

    def __call__(self, main_class: str, *arguments: str | Path) -> list[str]:
        """Return the command line."""
        return [str(self._java), f"@{self._arguments}", main_class, *(str(argument) for argument in arguments)]


def java_arguments(jars: Iterable[Path], logging_option: str) -> str:
    """Return the content of an @-file: the options of a broker's JVM and its class path."""
    lines = [*JVM_OPTIONS, logging_option, "-cp", os.pathsep.join(str(jar) for jar in jars)]
    return "".join(f'"{_escaped(line)}"\n' for line in lines)


def _escaped(argument: str) -> str:
    return argument.replace("\\", "\\\\").replace('"', '\\"')
