#include "sim/exec/runtime/printf_format.h"

#include <cctype>
#include <cstdio>
#include <vector>

namespace gridloom::exec {
namespace {

class Formatter {
 public:
  Formatter(std::string_view format, const PrintfArguments& arguments) : format_(format), arguments_(arguments) {}

  PrintfText Run() {
    while (at_ < format_.size()) {
      const std::size_t percent = format_.find('%', at_);
      result_.text += format_.substr(at_, percent - at_);
      if (percent == std::string_view::npos) break;
      at_ = percent;
      if (!Conversion()) {
        result_.text += '%';  // no conversion begins here: the sign stands for itself
        at_ = percent + 1;
      }
    }
    return std::move(result_);
  }

 private:
  char Peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  template <typename T>
  T Next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    arguments_.read(offset_, &value, sizeof value);
    offset_ += sizeof(T);
    ++result_.arguments;
    return value;
  }

  /// '*' or digits of a width or precision, copied into the host's specification.
  void Number(std::string& spec) {
    if (Peek() == '*') {
      ++at_;
      spec += std::to_string(Next<std::int32_t>());  // a negative width keeps its minus sign, which is the flag
      return;
    }
    while (std::isdigit(static_cast<unsigned char>(Peek()))) spec += format_[at_++];
  }

  // conversion := '%' [-+ #0]* (digits | '*')? ('.' (digits | '*')?)? (h | hh | l | ll | z | t | j)?
  // [diouxXfFeEgGaAcsp%]
  bool Conversion() {
    const std::uint64_t offset_before = offset_;
    const std::int32_t arguments_before = result_.arguments;
    std::string spec = "%";
    ++at_;
    while (Peek() != '\0' && std::string_view("-+ #0").find(Peek()) != std::string_view::npos) spec += format_[at_++];
    Number(spec);
    if (Peek() == '.') {
      spec += format_[at_++];
      const std::size_t before = spec.size();
      Number(spec);
      if (spec.size() > before && spec[before] == '-')
        spec.resize(before - 1);  // negative: as if there were no precision
    }
    std::string length;
    while (Peek() != '\0' && std::string_view("hlzjt").find(Peek()) != std::string_view::npos) length += format_[at_++];
    const char conversion = Peek();
    ++at_;
    if (Emit(spec, length, conversion)) return true;
    offset_ = offset_before;
    result_.arguments = arguments_before;
    return false;
  }

  template <typename T>
  void Print(const std::string& spec, T value) {
    char small[128];
    const int length = std::snprintf(small, sizeof small, spec.c_str(), value);
    if (length < 0) return;
    if (static_cast<std::size_t>(length) < sizeof small) {
      result_.text.append(small, static_cast<std::size_t>(length));
      return;
    }
    std::vector<char> large(static_cast<std::size_t>(length) + 1);
    std::snprintf(large.data(), large.size(), spec.c_str(), value);
    result_.text.append(large.data(), static_cast<std::size_t>(length));
  }

  bool Emit(const std::string& spec, const std::string& length, char conversion) {
    const bool wide = !length.empty() && length[0] != 'h';
    switch (conversion) {
      case 'd':
      case 'i':
        if (wide) Print(spec + "lld", static_cast<long long>(Next<std::int64_t>()));
        else Print(spec + length + "d", Next<std::int32_t>());
        return true;
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        if (wide) Print(spec + "ll" + conversion, static_cast<unsigned long long>(Next<std::uint64_t>()));
        else Print(spec + length + conversion, Next<std::uint32_t>());
        return true;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': Print(spec + conversion, Next<double>()); return true;
      case 'c': Print(spec + 'c', Next<std::int32_t>()); return true;
      case 's': {
        const std::string text = arguments_.string(Next<std::uint64_t>());
        Print(spec + 's', text.c_str());
        return true;
      }
      case 'p': Print(spec + 'p', reinterpret_cast<void*>(Next<std::uint64_t>())); return true;
      case '%': result_.text += '%'; return true;
      default: return false;
    }
  }

  std::string_view format_;
  const PrintfArguments& arguments_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
  PrintfText result_;
};

}  // namespace

PrintfText FormatPrintf(std::string_view format, const PrintfArguments& arguments) {
  return Formatter(format, arguments).Run();
}

}  // namespace gridloom::exec
