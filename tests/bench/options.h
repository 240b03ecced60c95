// Options of the small benchmarks: names, each with one value.
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace bench {

struct Option {
  std::string_view name;
  std::variant<double*, unsigned*, std::string*> value;
};

/// All of `text` as a number that a T can be; ends the program with exit code 1 when it is none.
template <typename T>
T Number(const char* program, std::string_view option, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0) || value > static_cast<double>(std::numeric_limits<T>::max()) ||
      (std::integral<T> && value != static_cast<double>(static_cast<T>(value)))) {
    std::fprintf(stderr, "%s: %s wants a number, not '%s'\n", program, std::string(option).c_str(), text);
    std::exit(1);
  }
  return static_cast<T>(value);
}

/// Fills in what the command line gives; ends the program with exit code 1 for what it does not know, and with 0 after
/// --help.
inline void ParseOptions(int argc, char** argv, std::span<const Option> options) {
  const auto die = [&](const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", argv[0], message.c_str());
    std::exit(1);
  };
  std::string known;
  for (const Option& option : options) known += " " + std::string(option.name);
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::printf("usage: %s [OPTION VALUE]…; options:%s\n", argv[0], known.c_str());
    std::exit(0);
  }
  if (argc % 2 == 0) die(std::string(argv[argc - 1]) + " wants a value, or is none of the options");
  for (int i = 1; i < argc; i += 2) {
    bool found = false;
    for (const Option& option : options) {
      if (option.name != argv[i]) continue;
      found = true;
      std::visit(
          [&](auto* value) {
            using Value = std::remove_pointer_t<decltype(value)>;
            if constexpr (std::same_as<Value, std::string>) *value = argv[i + 1];
            else *value = Number<Value>(argv[0], option.name, argv[i + 1]);
          },
          option.value);
    }
    if (!found) die("unknown option " + std::string(argv[i]) + "; there are" + known);
  }
}

}  // namespace bench
