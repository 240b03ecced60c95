// `gridloom inspect --check`: would the kernels run? Their PTX is verified, and each is compiled as its first launch
// would compile it, and thrown away.
#pragma once

#include "interpose/launcher/inspect/report.h"

namespace gridloom::launcher {

/// Fills KernelReport::check of every kernel of the report. Parts of a separately compiled program are linked first.
/// Uses up the report's modules. An error when there is no compiler library.
Status CheckKernels(InspectReport& report);

}  // namespace gridloom::launcher
