#include "sim/device/device_spec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "sim/device/yaml_map.h"

namespace gridloom::sim {
namespace {

template <typename T>
DeviceField::Slot SlotOf(T& member) {
  return &member;
}
DeviceField::Slot SlotOf(Pipe& member) { return NamedChoice{reinterpret_cast<std::uint8_t*>(&member), kPipeNames}; }
DeviceField::Slot SlotOf(WarpOrder& member) {
  return NamedChoice{reinterpret_cast<std::uint8_t*>(&member), kWarpOrderNames};
}
DeviceField::Slot SlotOf(Lowering& member) {
  return NamedChoice{reinterpret_cast<std::uint8_t*>(&member), kLoweringNames};
}
DeviceField::Slot SlotOf(StorePolicy& member) {
  return NamedChoice{reinterpret_cast<std::uint8_t*>(&member), kStorePolicyNames};
}

constexpr DeviceField kFields[] = {
#define GL_DEVICE_FIELD(member, meaning) {#member, [](DeviceSpec& spec) { return SlotOf(spec.member); }, meaning},
#include "sim/device/device_fields.def"
#undef GL_DEVICE_FIELD
#define GL_TIMING_FIELD(key, member, meaning) {#key, [](DeviceSpec& spec) { return SlotOf(spec.member); }, meaning},
#include "sim/device/timing_fields.def"
#undef GL_TIMING_FIELD
};

/// Facts that are zero on some devices; every other number must be given and positive.
constexpr std::string_view kMayBeZero[] = {
    "block.shared_reserved_bytes",
    "l2.persisting_bytes",
    "l2.max_window_bytes",
    "timing.units.tensor",
    "timing.texture.size_bytes",
    "timing.sm.guard_latency",
    "timing.l2.far_cycles",
    "timing.tlb.entries",
    "timing.launch.kernel_cycles",
    "timing.launch.dependent_cycles",
    "timing.launch.cta_interval",
    "timing.launch.profiled_cycles",
    "timing.pcie.latency_ns",
    "timing.host.storage_mb_s",
    "timing.host.copy_call_ns",
    "timing.pcie.engine_ns",
    "timing.pcie.to_host_engine_ns",
    "timing.pcie.handover_ns",
    "timing.device_launch.stream_cycles",
    "timing.device_launch.buffer_cycles",
    "timing.device_launch.buffer_thread_cycles",
    "timing.device_launch.call_cycles",
    "timing.device_launch.call_thread_cycles",
    "timing.device_launch.dispatch_cycles",
    "timing.device_launch.dispatch_interval",
    "timing.device_launch.record_bytes",
    "timing.device_launch.percent",
};

const DeviceField* FindField(std::string_view key) {
  const auto field = std::ranges::find(kFields, key, &DeviceField::key);
  return field == std::end(kFields) ? nullptr : &*field;
}

/// "lrr, gto or two_level"
std::string OneOf(std::span<const char* const> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

struct SetValue {
  std::string_view text;

  /// Each returns what was expected when the text does not fit, else an empty string.
  std::string operator()(std::uint32_t* slot) const {
    const auto value = ParseNumber(text);
    if (!value || *value > std::numeric_limits<std::uint32_t>::max())
      return "a number below 2^32, optionally with KiB, MiB or GiB";
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
  std::string operator()(NamedChoice choice) const {
    const auto name =
        std::ranges::find(choice.names, text, [](const char* candidate) { return std::string_view(candidate); });
    if (name == choice.names.end()) return OneOf(choice.names);
    *choice.value = static_cast<std::uint8_t>(name - choice.names.begin());
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
  std::vector<std::string_view> known{"inherits", "proposed"};
  for (const DeviceField& field : kFields) known.push_back(field.key);
  return UnknownYamlKey(entry, file, known, "docs/devices.md lists the keys");
}

struct Rule {
  bool holds;
  std::string_view sentence;
};

/// One sentence about the first rule that does not hold.
Status FirstBroken(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    if (!rule.holds) return Error{std::string(rule.sentence)};
  }
  return {};
}

/// Whether a cache divides into sets of `ways` lines of 128 bytes.
bool IsWholeSets(std::uint64_t bytes, std::uint64_t ways) { return bytes % (ways * TimingSpec::kLineBytes) == 0; }

/// Whether what the DRAM channels transfer agrees within 2 % with the bandwidth that the device reports.
bool BandwidthAgrees(const DeviceSpec& spec) {
  const TimingSpec::Dram& dram = spec.timing.dram;
  const std::uint64_t modelled = std::uint64_t{dram.channels} * dram.bytes_per_cycle * spec.timing.clock.dram_mhz;
  const std::uint64_t reported = std::uint64_t{spec.memory.clock_mhz} * spec.memory.bus_bits / 4;
  return modelled * 100 >= reported * 98 && modelled * 100 <= reported * 102;
}

Status ValidateTiming(const DeviceSpec& spec) {
  const TimingSpec& timing = spec.timing;
  const auto divides = [](std::uint32_t part, std::uint32_t whole) { return whole % part == 0; };
  constexpr std::uint32_t kMostCache = 16 << 20;
  const Rule rules[] = {
      // Some 20 times what the largest GPUs have. Messages name their SM and slice in 16 bits; the rest is memory of
      // the host.
      {spec.sm.count <= 4096, "sm.count must be at most 4096"},
      {spec.sm.max_blocks <= 1024, "sm.max_blocks must be at most 1024"},
      {timing.l2.slices <= 4096, "timing.l2.slices must be at most 4096"},
      {timing.launch.queues <= 4096, "timing.launch.queues must be at most 4096"},
      // A launch's call ends, and a child begins, before the model's clocks do.
      {timing.device_launch.percent <= 100'000, "timing.device_launch.percent must be at most 100000"},
      {std::ranges::max({timing.device_launch.stream_cycles, timing.device_launch.buffer_cycles,
                         timing.device_launch.buffer_thread_cycles, timing.device_launch.call_cycles,
                         timing.device_launch.call_thread_cycles, timing.device_launch.dispatch_cycles,
                         timing.device_launch.dispatch_interval, timing.device_launch.record_bytes}) <= 1'000'000,
       "the keys of timing.device_launch must be at most 1000000"},
      {timing.tlb.entries <= 65536, "timing.tlb.entries must be at most 65536"},
      {std::ranges::max({timing.l1.size_bytes, timing.constant.size_bytes, timing.texture.size_bytes}) <= kMostCache,
       "timing.l1.size_bytes, timing.constant.size_bytes and timing.texture.size_bytes must be at most 16 MiB"},
      {timing.sm.schedulers <= 8 && divides(timing.sm.schedulers, spec.max_warps_per_sm()),
       "timing.sm.schedulers must be at most 8 and divide the warps of an SM (sm.max_threads / 32)"},
      {spec.max_warps_per_sm() / timing.sm.schedulers <= 64,
       "timing.sm.schedulers must be at least sm.max_threads / 2048"},
      {timing.sm.issue_width <= 2, "timing.sm.issue_width must be 1 or 2"},
      {std::ranges::all_of(timing.units, [](std::uint32_t count) { return count <= 64; }),
       "timing.units.* must be at most 64"},
      {std::ranges::all_of(timing.op,
                           [](const TimingSpec::Op& op) { return op.latency < 65536 && op.interval < 65536; }),
       "timing.op.*.latency and interval must be below 65536"},
      {timing.shared.banks <= 64 && (timing.shared.banks & (timing.shared.banks - 1)) == 0,
       "timing.shared.banks must be a power of two up to 64"},
      {timing.shared.bank_bytes == 4 || timing.shared.bank_bytes == 8, "timing.shared.bank_bytes must be 4 or 8"},
      {std::ranges::max({timing.l1.ways, timing.constant.ways, timing.texture.ways}) <= 64,
       "timing.l1.ways, timing.constant.ways and timing.texture.ways must be at most 64"},
      {IsWholeSets(timing.l1.size_bytes, timing.l1.ways),
       "timing.l1.size_bytes must be a multiple of 128 * timing.l1.ways"},
      {IsWholeSets(timing.constant.size_bytes, timing.constant.ways),
       "timing.constant.size_bytes must be a multiple of 128 * timing.constant.ways"},
      {IsWholeSets(timing.texture.size_bytes, timing.texture.ways),
       "timing.texture.size_bytes must be a multiple of 128 * timing.texture.ways"},
      {divides(timing.tlb.ways, timing.tlb.entries), "timing.tlb.entries must be a multiple of timing.tlb.ways"},
      {timing.sm.guard_latency <= 64, "timing.sm.guard_latency must be at most 64"},
      {timing.l1.tags <= 32, "timing.l1.tags must be at most 32"},
      {timing.shared.way_cycles <= 64, "timing.shared.way_cycles must be at most 64"},
      {timing.l1.mshrs <= 4096, "timing.l1.mshrs must be at most 4096"},
      {std::uint64_t{timing.l1.mshrs} * timing.l1.merges + timing.l1.queue < 65535,
       "timing.l1.mshrs * merges + queue must be below 65535"},
      {std::uint64_t{spec.sm.count} * (std::uint64_t{timing.l1.mshrs} + timing.l1.stores) < (1u << 20),
       "sm.count * (timing.l1.mshrs + stores) must be below 1048576"},
      {divides(timing.dram.channels, timing.l2.slices), "timing.l2.slices must be a multiple of timing.dram.channels"},
      {timing.l2.slices / timing.dram.channels <= 64, "timing.l2.slices must be at most 64 for each DRAM channel"},
      {IsWholeSets(spec.l2.size_bytes, std::uint64_t{timing.l2.slices} * timing.l2.ways * timing.l2.halves),
       "l2.size_bytes must be a multiple of 128 * timing.l2.ways * timing.l2.slices * timing.l2.halves"},
      {timing.l2.halves <= 2, "timing.l2.halves must be 1 or 2"},
      {timing.l2.far_cycles <= 10'000, "timing.l2.far_cycles must be at most 10000"},
      {timing.l2.ways <= 64, "timing.l2.ways must be at most 64"},
      {timing.l2.interleave_bytes % TimingSpec::kLineBytes == 0,
       "timing.l2.interleave_bytes must be a multiple of 128"},
      {spec.memory.page_bytes >= TimingSpec::kLineBytes && std::has_single_bit(spec.memory.page_bytes),
       "memory.page_bytes must be a power of two from 128 on"},
      {timing.dram.row_bytes % TimingSpec::kLineBytes == 0, "timing.dram.row_bytes must be a multiple of 128"},
      {timing.dram.banks <= 64 && divides(timing.dram.bank_groups, timing.dram.banks),
       "timing.dram.banks must be at most 64 and a multiple of timing.dram.bank_groups"},
      {timing.dram.access_bytes % 32 == 0 && divides(timing.dram.access_bytes, TimingSpec::kLineBytes),
       "timing.dram.access_bytes must be 32, 64 or 128"},
      {timing.dram.tCCD * timing.dram.bytes_per_cycle >= timing.dram.access_bytes,
       "timing.dram.tCCD must leave time for timing.dram.access_bytes on the data bus"},
      {timing.dram.tCCDL >= timing.dram.tCCD, "timing.dram.tCCDL must not be below tCCD"},
      {std::ranges::max({timing.dram.tCCD, timing.dram.tCCDL, timing.dram.tRRD, timing.dram.tRCD, timing.dram.tRAS,
                         timing.dram.tRP, timing.dram.tRC, timing.dram.tCL, timing.dram.tWL, timing.dram.tWR,
                         timing.dram.tCDLR, timing.dram.tRTP}) <= TimingSpec::Dram::kMaxCommandCycles,
       "timing.dram.tCCD and the times after it must be at most 2048"},
      {timing.dram.tRC >= timing.dram.tRAS, "timing.dram.tRC must not be below tRAS"},
      {timing.dram.queue >= 2 && timing.dram.queue <= 1024, "timing.dram.queue must be between 2 and 1024"},
      {BandwidthAgrees(spec),
       "timing.dram.channels * bytes_per_cycle * timing.clock.dram_mhz must be within 2 % of memory.clock_mhz * "
       "memory.bus_bits / 4"},
  };
  return FirstBroken(rules);
}

constexpr std::string_view kPartPrefix = "hardware.";

/// `none` stands for no part.
void AddProposed(std::string_view names, DeviceSpec& spec) {
  constexpr std::string_view kBetween = ", +";
  for (std::size_t begin = names.find_first_not_of(kBetween); begin != names.npos;
       begin = names.find_first_not_of(kBetween, begin)) {
    const std::size_t end = std::min(names.find_first_of(kBetween, begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    if (name != "none") spec.proposed.emplace_back(name);
    begin = end;
  }
}

/// `hardware.PART.KEY`; names of parts have no dots.
Status SetPartValue(const YamlEntry& entry, std::string_view file, DeviceSpec& spec) {
  const std::string where = PlaceOf(entry, file);
  const std::string name = entry.key.substr(kPartPrefix.size());
  const std::size_t dot = name.find('.');
  if (dot == name.npos)
    return Error{where + ": '" + entry.key + "' is no key of a proposed part; expected hardware.PART.KEY"};
  PartValue value{.part = name.substr(0, dot), .key = name.substr(dot + 1), .value = entry.value, .where = where};
  const auto known = std::ranges::find_if(
      spec.part_values, [&](const PartValue& other) { return other.part == value.part && other.key == value.key; });
  if (known != spec.part_values.end()) *known = std::move(value);
  else spec.part_values.push_back(std::move(value));
  return {};
}

/// A key with one value that is no `inherits`. Adds what it set to `keys`.
Status SetKey(const YamlEntry& entry, std::string_view file, DeviceSpec& spec, std::vector<std::string_view>& keys) {
  if (entry.key.starts_with(kPartPrefix)) return SetPartValue(entry, file, spec);
  const DeviceField* field = FindField(entry.key);
  if (field == nullptr) return UnknownKey(entry, file);
  const std::string expected = std::visit(SetValue{entry.value}, field->slot(spec));
  if (!expected.empty())
    return Error{PlaceOf(entry, file) + ": " + entry.key + " is '" + entry.value + "'; expected " + expected};
  keys.push_back(field->key);
  return {};
}

}  // namespace

/// The unit stands for a power of 1024.
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

std::span<const DeviceField> DeviceFields() { return kFields; }

std::string FieldText(const DeviceField& field, const DeviceSpec& spec) {
  struct Text {
    std::string operator()(const std::uint32_t* value) const { return std::to_string(*value); }
    std::string operator()(const std::uint64_t* value) const { return std::to_string(*value); }
    std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(const std::string* value) const { return *value; }
    std::string operator()(const ComputeCapability* value) const { return value->text(); }
    std::string operator()(const NamedChoice& choice) const { return choice.names[*choice.value]; }
  };
  // The accessor hands out writable slots; here they are only read.
  return std::visit(Text{}, field.slot(const_cast<DeviceSpec&>(spec)));
}

Result<DeviceText> ApplyDeviceText(std::string_view text, std::string_view file, DeviceSpec& spec) {
  GL_TRY(entries, ReadYamlLists(text, file));
  DeviceText result;
  bool proposes = false;
  for (const YamlEntry& entry : entries) {
    if (entry.key == "proposed") {
      if (!std::exchange(proposes, true)) spec.proposed.clear();  // those that it inherits
      AddProposed(entry.value, spec);
    } else if (entry.of_list) {
      return Error{PlaceOf(entry, file) + ": a list is not expected here"};
    } else if (entry.key == "inherits") {
      result.inherits = entry.value;
    } else {
      GL_TRY_STATUS(SetKey(entry, file, spec, result.keys));
    }
  }
  return result;
}

Status SetDeviceKey(const std::string& key, const std::string& value, std::string_view place, DeviceSpec& spec) {
  if (key == "proposed") {
    Propose(value, spec);
    return {};
  }
  std::vector<std::string_view> keys;
  return SetKey({.key = key, .value = value}, place, spec, keys);
}

void Propose(std::string_view names, DeviceSpec& spec) {
  spec.proposed.clear();
  AddProposed(names, spec);
}

std::string DeviceLabel(const DeviceSpec& spec) {
  std::string label = spec.id;
  for (const std::string& part : spec.proposed) label += " + " + part;
  return label;
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
      {spec.block.shared_bytes <= spec.block.shared_optin_bytes,
       "block.shared_bytes must not exceed block.shared_optin_bytes"},
      {std::uint64_t{spec.block.shared_optin_bytes} + spec.block.shared_reserved_bytes <= spec.sm.shared_bytes,
       "block.shared_optin_bytes plus block.shared_reserved_bytes must not exceed sm.shared_bytes"},
      {spec.cluster.max_blocks <= spec.cluster.max_blocks_nonportable,
       "cluster.max_blocks must not exceed cluster.max_blocks_nonportable"},
      {spec.l2.persisting_bytes <= spec.l2.size_bytes, "l2.persisting_bytes must not exceed l2.size_bytes"},
  };
  GL_TRY_STATUS(FirstBroken(rules));
  return ValidateTiming(spec);
}

}  // namespace gridloom::sim
