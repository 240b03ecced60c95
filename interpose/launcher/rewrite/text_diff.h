// Unified diffs of texts.
#pragma once

#include <string>
#include <string_view>

namespace gridloom::launcher {

/// What `diff -u` shows, with three lines around each change; empty when the texts are equal. Changes are found by
/// looking for the next place where several lines agree again, which suits texts that something was put into.
std::string UnifiedDiff(std::string_view old_text, std::string_view new_text, const std::string& old_name,
                        const std::string& new_name);

}  // namespace gridloom::launcher
