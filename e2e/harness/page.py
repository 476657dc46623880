"""A page of the documentation whose steps can be taken: what its blocks say, and what they ought to answer.

A block is what a comment in the line above it says. All others are to be read only.

    <!-- file: NAME -->       is written into the reader's folder
    <!-- run -->              lines with `$ ` are commands, and what is below them is what they print: `…` is any text, alone in a line any lines
    <!-- start: NAME -->      a command that goes on, such as a scheduler; its log is looked at by nobody
    <!-- container: NAME -->  no block: the API server takes the manifest in that file, and the command of its container is started here
    <!-- stop -->             no block: what goes on is ended
"""

import re

STEP = re.compile(r"^<!-- (?P<what>file|run|start|container|stop)(?:: (?P<name>\S+))? -->\n(?:```\w*\n(?P<body>.*?)^```)?", re.DOTALL | re.MULTILINE)


class Step:
    def __init__(self, what, name, body):
        self.what, self.name, self.body = what, name, body

    def commands(self):
        """Pairs of a command and the lines that it prints."""
        found = []
        for line in self.body.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif found:
                found[-1][1].append(line)
            else:
                raise AssertionError(f"a block to run begins with {line!r}, which is no command")
        return found


def sections(text):
    """The steps of each section, by its heading; sections without any are left out."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        steps = [Step(match["what"], match["name"], match["body"] or "") for match in STEP.finditer(body)]
        if steps:
            found[heading.strip()] = steps
    return found


def pattern(lines):
    """What the answer must match as a whole."""
    parts = []
    for line in lines:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n")
    # Columns are as wide as what is in them.
    return re.compile(re.sub(r"(?:\\ ){2,}", r" +", "".join(parts)))
