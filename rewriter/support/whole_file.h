// Files that are read and written in one go.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"

namespace gridloom {

/// All bytes of a regular file. The error names it: "cannot read FOLDER: Is a directory". (Iterators over a
/// std::ifstream throw for a folder and for a disk's error, and its rdbuf() says that it is empty.)
Result<std::string> ReadWholeFile(const std::string& path);
/// The same part by part, for files that memory need not hold. `take` has been called for what came before an error.
Status ReadFileInParts(const std::string& path, const std::function<void(std::string_view)>& take);

/// Writes all of it to an open file; 0, or errno. Where a file may grow no further (RLIMIT_FSIZE) that is EFBIG, and no
/// SIGXFSZ, which would end a program for the sake of its trace.
int WriteWhole(int file, std::string_view bytes);

}  // namespace gridloom
