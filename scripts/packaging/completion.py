"""Completion of commands and options for bash, zsh and fish."""

BASH = "share/bash-completion/completions/gridloom"
ZSH = "share/zsh/vendor-completions/_gridloom"
FISH = "share/fish/vendor_completions.d/gridloom.fish"
TAKES_PROGRAM = ("run", "compare")
# Commands whose option of that name is a device: the names come from `gridloom devices`.
DEVICE_FLAGS = ("--device", "-d", "--timing-device")


def flags(command):
    return [flag for option in command.options for flag in option.flags]


def bash(commands):
    names = " ".join(command.name for command in commands)
    cases = "\n".join(f"    {c.name}) options=\"{' '.join(flags(c))}\" ;;" for c in commands)
    return f"""# Completion of gridloom for bash.
_gridloom() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options= i
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do  # behind --, the words are another program's
    if [ "${{COMP_WORDS[i]}}" = -- ]; then
      COMPREPLY=($(compgen -c -f -- "$current"))
      return
    fi
  done
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$before" in
    {"|".join(DEVICE_FLAGS)})
      COMPREPLY=($(compgen -f -W "$(gridloom devices 2>/dev/null | awk 'NR > 1 && $1 ~ /^[a-z0-9_.-]+$/ && NF > 3 {{print $1}}')" -- "$current"))
      return ;;
  esac
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$current"))
  else COMPREPLY=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _gridloom gridloom
"""


def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh(commands):
    listed = "\n".join(f"    '{c.name}:{zsh_text(c.summary)}'" for c in commands)
    cases = []
    for command in commands:
        rows = [f"'{flag}[{zsh_text(option.text)}]{':value:_files' if option.value else ''}'"
                for option in command.options for flag in option.flags]
        rest = "'*:::program:_normal'" if command.name in TAKES_PROGRAM else "'*:file:_files'"
        cases.append(f"    {command.name}) _arguments {' '.join(rows)} {rest} ;;")
    body = "\n".join(cases)
    return f"""#compdef gridloom
_gridloom() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{body}
  esac
}}
_gridloom "$@"
"""


def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish(commands):
    lines = ["# Completion of gridloom for fish.", "set -l commands " + " ".join(c.name for c in commands)]
    for command in commands:
        lines.append(f"complete -c gridloom -n \"not __fish_seen_subcommand_from $commands\" -f -a {command.name} "
                     f"-d '{fish_text(command.summary)}'")
        for option in command.options:
            names = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
            value = " -r" if option.value else ""
            lines.append(f"complete -c gridloom -n '__fish_seen_subcommand_from {command.name}' {names}{value} "
                         f"-d '{fish_text(option.text)}'")
    return "\n".join(lines) + "\n"


def scripts(commands):
    """Paths below the prefix, and texts."""
    return {BASH: bash(commands), ZSH: zsh(commands), FISH: fish(commands)}
