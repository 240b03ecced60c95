#include "sim/hardware/device_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "rewriter/support/suggest.h"
#include "sim/hardware/yaml_map.h"

namespace gridloom::sim {
namespace {

constexpr DeviceField kFields[] = {
#define GL_DEVICE_FIELD(member, meaning) {#member, [](DeviceSpec& spec) -> DeviceField::Slot { return &spec.member; }, meaning},
#include "sim/hardware/device_fields.def"
#undef GL_DEVICE_FIELD
};

/// Facts that are zero on some devices; every other number must be given and positive.
constexpr std::string_view kMayBeZero[] = {"block.shared_reserved_bytes", "l2.persisting_bytes", "l2.max_window_bytes"};

const DeviceField* FindField(std::string_view key) {
  const auto field = std::ranges::find(kFields, key, &DeviceField::key);
  return field == std::end(kFields) ? nullptr : &*field;
}

/// "50 MiB" -> 52428800; the unit is optional and stands for a power of 1024.
std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  struct Unit {
    std::string_view name;
    unsigned shift;
  };
  static constexpr Unit kUnits[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  for (const Unit& candidate : kUnits) {
    if (candidate.name != unit) continue;
    if (value > (std::numeric_limits<std::uint64_t>::max() >> candidate.shift)) return std::nullopt;
    return value << candidate.shift;
  }
  return std::nullopt;
}

struct SetValue {
  std::string_view text;

  /// Each returns what was expected when the text does not fit, else an empty string.
  std::string operator()(std::uint32_t* slot) const {
    const auto value = ParseNumber(text);
    if (!value || *value > std::numeric_limits<std::uint32_t>::max()) return "a number below 2^32, optionally with KiB, MiB or GiB";
    *slot = static_cast<std::uint32_t>(*value);
    return {};
  }
  std::string operator()(std::uint64_t* slot) const {
    const auto value = ParseNumber(text);
    if (!value) return "a number, optionally with KiB, MiB or GiB";
    *slot = *value;
    return {};
  }
  std::string operator()(bool* slot) const {
    if (text != "true" && text != "false") return "true or false";
    *slot = text == "true";
    return {};
  }
  std::string operator()(std::string* slot) const {
    if (text.empty()) return "a text";
    *slot = text;
    return {};
  }
  std::string operator()(ComputeCapability* slot) const {
    const auto value = ParseComputeCapability(text);
    if (!value) return "a compute capability such as 9.0";
    *slot = *value;
    return {};
  }
};

Error UnknownKey(const YamlEntry& entry, std::string_view file) {
  std::vector<std::string_view> known{"inherits"};
  for (const DeviceField& field : kFields) known.push_back(field.key);
  std::string message = std::string(file) + ":" + std::to_string(entry.line) + ": unknown key '" + entry.key + "'";
  const std::string_view nearest = NearestName(entry.key, known);
  if (!nearest.empty()) message += "; did you mean '" + std::string(nearest) + "'?";
  else message += "; docs/devices.md lists the keys";
  return Error{std::move(message)};
}

struct Rule {
  bool holds;
  std::string_view sentence;
};

}  // namespace

std::span<const DeviceField> DeviceFields() { return kFields; }

std::string FieldText(const DeviceField& field, const DeviceSpec& spec) {
  struct Text {
    std::string operator()(const std::uint32_t* value) const { return std::to_string(*value); }
    std::string operator()(const std::uint64_t* value) const { return std::to_string(*value); }
    std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(const std::string* value) const { return *value; }
    std::string operator()(const ComputeCapability* value) const { return value->text(); }
  };
  // The accessor hands out writable slots; here they are only read.
  return std::visit(Text{}, field.slot(const_cast<DeviceSpec&>(spec)));
}

Result<DeviceText> ApplyDeviceText(std::string_view text, std::string_view file, DeviceSpec& spec) {
  GL_TRY(entries, ReadYamlMap(text, file));
  DeviceText result;
  for (const YamlEntry& entry : entries) {
    if (entry.key == "inherits") {
      result.inherits = entry.value;
      continue;
    }
    const DeviceField* field = FindField(entry.key);
    if (field == nullptr) return UnknownKey(entry, file);
    const std::string expected = std::visit(SetValue{entry.value}, field->slot(spec));
    if (!expected.empty()) {
      return Error{std::string(file) + ":" + std::to_string(entry.line) + ": " + entry.key + " is '" + entry.value + "'; expected " +
                   expected};
    }
    result.keys.push_back(field->key);
  }
  return result;
}

Status ValidateDevice(const DeviceSpec& spec) {
  for (const DeviceField& field : kFields) {
    const bool may_be_zero = std::ranges::find(kMayBeZero, field.key) != std::end(kMayBeZero);
    if (!may_be_zero && FieldText(field, spec) == "0") return Error{std::string(field.key) + " must be greater than 0"};
  }
  const Rule rules[] = {
      {spec.sm.max_threads % DeviceSpec::kWarpSize == 0, "sm.max_threads must be a multiple of the warp size, 32"},
      {spec.block.max_threads <= spec.sm.max_threads, "block.max_threads must not exceed sm.max_threads"},
      {spec.block.registers <= spec.sm.registers, "block.registers must not exceed sm.registers"},
      {spec.block.shared_bytes <= spec.block.shared_optin_bytes, "block.shared_bytes must not exceed block.shared_optin_bytes"},
      {std::uint64_t{spec.block.shared_optin_bytes} + spec.block.shared_reserved_bytes <= spec.sm.shared_bytes,
       "block.shared_optin_bytes plus block.shared_reserved_bytes must not exceed sm.shared_bytes"},
      {spec.cluster.max_blocks <= spec.cluster.max_blocks_nonportable, "cluster.max_blocks must not exceed cluster.max_blocks_nonportable"},
      {spec.l2.persisting_bytes <= spec.l2.size_bytes, "l2.persisting_bytes must not exceed l2.size_bytes"},
  };
  for (const Rule& rule : rules) {
    if (!rule.holds) return Error{std::string(rule.sentence)};
  }
  return {};
}

}  // namespace gridloom::sim
