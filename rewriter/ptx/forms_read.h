// Reads forms.def once for the macros that are defined, and undefines them. No guard: form.cpp includes it for each
// table.
#ifndef PTX_FORM
#define PTX_FORM(...)
#endif
#ifndef PTX_NEEDS
#define PTX_NEEDS(...)
#endif
#ifndef PTX_MOST
#define PTX_MOST(...)
#endif
#ifndef PTX_FIRST
#define PTX_FIRST(...)
#endif
#ifndef PTX_ORDER
#define PTX_ORDER(...)
#endif
#ifndef PTX_WORDS
#define PTX_WORDS(...)
#endif
#ifndef PTX_TAKES
#define PTX_TAKES(...)
#endif
#ifndef PTX_WITH
#define PTX_WITH(...)
#endif
#ifndef PTX_GROUP
#define PTX_GROUP(...)
#endif
#ifndef PTX_WORD
#define PTX_WORD(...)
#endif
#include "rewriter/ptx/forms.def"
#undef PTX_FORM
#undef PTX_NEEDS
#undef PTX_MOST
#undef PTX_FIRST
#undef PTX_ORDER
#undef PTX_WORDS
#undef PTX_TAKES
#undef PTX_WITH
#undef PTX_GROUP
#undef PTX_WORD
