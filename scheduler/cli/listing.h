// What the broker says of itself (Verb::kPs) as tables for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gridloom::broker {

/// Tenants, then processes.
std::string Listing(const nlohmann::ordered_json& state);

/// The same with rates since `before`: one picture of `gridloom top`, cut to the terminal's size (0: not cut).
std::string Picture(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now, unsigned columns,
                    unsigned lines);

}  // namespace gridloom::broker
