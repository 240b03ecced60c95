"""Part of generate.py: the functions of cuFFT that the shim answers, from interpose/fft/functions.txt."""
import library_functions

C_TYPES = {"p": "void*", "e": "int", "l": "long long"}


def function(name, implementation, kinds):
    parameters = ", ".join(f"{C_TYPES[kind]} p{i}" for i, kind in enumerate(kinds))
    arguments = ", ".join(f"p{i}" for i in range(len(kinds)))
    pass_on = f'hooks::PassTo(kInternalError, "libcufft.so", &{name}, "{name}", {arguments})'
    if implementation == "library":
        return f"GL_EXPORT int {name}({parameters}) {{ return {pass_on}; }}\n"
    if implementation.startswith("refuse "):
        call = f'Refuse("{name}", {implementation.split()[1]})'
    else:
        call = f"{implementation}({arguments})"
    return f"""GL_EXPORT int {name}({parameters}) {{
  if (hooks::PassOn()) return {pass_on};
  return hooks::Guarded(kAllocFailed, kInternalError, [&] {{ return {call}; }});
}}
"""


def generate(path):
    """The text of fft_functions.cpp (every function, and the table that look-ups by name search), and the functions' names."""
    names, bodies = [], []
    for name, implementation, kinds in library_functions.rows(path, 3, set(C_TYPES)):
        names.append(name)
        bodies.append(function(name, implementation, kinds.split()))
    includes = ("interpose/fft/answers.h", "interpose/fft/functions.h", "interpose/hooks/own_kernels.h")
    return library_functions.source(path, "fft", includes, bodies, names), names
