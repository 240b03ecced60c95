// Options of the small benchmarks: names, each with one value.
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>
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

/// Fills in what the command line gives; ends the program with exit code 1 for what it does not know.
inline void ParseOptions(int argc, char** argv, std::span<const Option> options) {
  const auto die = [&](const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", argv[0], message.c_str());
    std::exit(1);
  };
  if (argc % 2 == 0) die(std::string(argv[argc - 1]) + " wants a value, or is none of the options");
  for (int i = 1; i < argc; i += 2) {
    std::string known;
    bool found = false;
    for (const Option& option : options) {
      known += " " + std::string(option.name);
      if (option.name != argv[i]) continue;
      found = true;
      std::visit(
          [&](auto* value) {
            using Value = std::remove_pointer_t<decltype(value)>;
            if constexpr (std::same_as<Value, std::string>) *value = argv[i + 1];
            else *value = static_cast<Value>(std::atof(argv[i + 1]));
          },
          option.value);
    }
    if (!found) die("unknown option " + std::string(argv[i]) + "; there are" + known);
  }
}

}  // namespace bench
