"""Commands of mc2 in this process: a line without quotes, or a list of words, which may be paths."""

from mc2core.app.cli import main


def exit_code(command):
    return main(command.split() if isinstance(command, str) else [str(word) for word in command])


def mc2(command):
    """Run a command that must succeed."""
    assert exit_code(command) == 0, command
