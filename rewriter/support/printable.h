// Text from outside (names in binaries and traces, other programs' and tenants' names, file names) on its way to a
// terminal, a log or JSON: whatever would move the cursor, hide or reorder what stands there is shown as an escape
// instead.
#pragma once

#include <string>
#include <string_view>

namespace gridloom {

/// For a line or a part of one: control characters (C0, DEL, C1), line and paragraph separators, marks that change the
/// direction of text and bytes that are no UTF-8 become "\x1b" or "\u202e". All other characters stay.
std::string Printable(std::string_view text);

/// The same for texts of several lines, such as errors: newlines and tabs stay.
std::string PrintableText(std::string_view text);

/// The same for whole output of ours: newlines, tabs and the colours of Coloured() stay. What comes from outside has to
/// have been made printable before it was put in: its colours stay, too.
std::string PrintableLines(std::string_view text);

/// The same for JSON, which is valid UTF-8: the characters are written as JSON's escapes, so that the values are the
/// same.
std::string PrintableJson(std::string json);

}  // namespace gridloom
