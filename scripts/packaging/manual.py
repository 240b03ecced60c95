"""Manual pages: gridloom(1), and one for each command."""

import datetime

EXIT_STATUS = ("The program's own under \\fBrun\\fR, \\fBcompare\\fR and \\fBdemo\\fR. 125: wrong usage, or a failure of Gridloom's own. "
               "126: the program cannot be executed. 127: it cannot be found. 1: \\fBdoctor\\fR or \\fBinspect \\-\\-check\\fR found something.")


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def head(title, facts):
    date = datetime.datetime.fromtimestamp(facts.epoch, datetime.timezone.utc).strftime("%Y-%m-%d")
    return f'.TH {title} 1 "{date}" "Gridloom {facts.version}" "Gridloom"\n'


def section(name, body):
    return f".SH {name}\n{body}\n"


def examples(lines):
    return ".nf\n" + "\n".join(escape(line) for line in lines) + "\n.fi"


def page(command, facts):
    options = ""
    for option in command.options:
        flags = ", ".join(f"\\fB{escape(flag)}\\fR" for flag in option.flags)
        value = f" \\fI{escape(option.value)}\\fR" if option.value else ""
        options += f".TP\n{flags}{value}\n{escape(option.text)}\n"
    text = head(f"GRIDLOOM\\-{command.name.upper()}", facts)
    text += section("NAME", f"gridloom\\-{command.name} \\- {escape(command.summary.rstrip('.'))}")
    text += section("SYNOPSIS", f"\\fB{escape(command.usage)}\\fR")
    text += section("OPTIONS", options.rstrip())
    if command.examples:
        text += section("EXAMPLES", examples(command.examples))
    text += section("EXIT STATUS", EXIT_STATUS)
    return text + section("SEE ALSO", "\\fBgridloom\\fR(1)")


def pages(commands, facts):
    """File names and texts."""
    listed = "".join(f".TP\n\\fBgridloom\\-{escape(c.name)}\\fR(1)\n{escape(c.summary)}\n" for c in commands)
    whole = head("GRIDLOOM", facts)
    whole += section("NAME", "gridloom \\- run unmodified CUDA programs without a GPU, share one, or simulate one")
    whole += section("SYNOPSIS", "\\fBgridloom\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]")
    whole += section("COMMANDS", listed.rstrip())
    whole += section("FILES", ".TP\n\\fI~/.cache/gridloom\\fR\nCompiled kernels; \\fBGRIDLOOM_CACHE_DIR\\fR is another folder, or \\fBoff\\fR.")
    whole += section("EXIT STATUS", EXIT_STATUS)
    found = {"gridloom.1": whole}
    for command in commands:
        found[f"gridloom-{command.name}.1"] = page(command, facts)
    return found
