// The secret by which a process shows that it may be a tenant: both sides read it from a file in the same way.
#pragma once

#include <string>

#include "rewriter/support/result.h"

namespace gridloom::protocol {

/// The first line of the file without its end: 8 to 200 bytes, of which none is zero. They need not be text; they are
/// compared one by one. `owner_only`: an error when others than the file's owner may read it, or change it.
Result<std::string> ReadSecret(const std::string& path, bool owner_only);

}  // namespace gridloom::protocol
