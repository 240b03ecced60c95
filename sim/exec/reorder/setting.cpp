#include "sim/exec/reorder/setting.h"

#include <charconv>

namespace gridloom::exec {

std::optional<ReorderSetting> ParseReorder(std::string_view text) {
  ReorderSetting setting;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), setting.seed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view form(end, text.data() + text.size());
  if (form == ":interval") setting.form = passes::RangeForm::kInterval;
  else if (!form.empty() && form != ":strided") return std::nullopt;
  return setting;
}

}  // namespace gridloom::exec
