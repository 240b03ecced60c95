// What a virtual GPU is: the facts programs ask for (cudaGetDeviceProperties) and the limits a launch is checked
// against. Read from configs/devices/*.yaml; every key is documented in docs/devices.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/support/compute_capability.h"
#include "rewriter/support/result.h"
#include "sim/device/timing_spec.h"

namespace gridloom::sim {

/// A value that a device file, or an option, gives to a key of a proposed part: `hardware.PART.KEY`. Which parts and
/// keys there are is not known here (sim/hardware/catalog.h).
struct PartValue {
  std::string part, key, value;
  std::string where;  ///< "FILE:LINE"

  bool operator==(const PartValue&) const = default;
};

/// Facts of one device. Plain data; a spec that came from LoadDevice or ParseDeviceSpec is complete and validated.
struct DeviceSpec {
  std::string id;           ///< file name without ".yaml": what --device takes
  std::string name;         ///< what cudaGetDeviceProperties reports
  std::string description;  ///< one line for `gridloom devices`
  ComputeCapability compute_capability;

  struct Sm {
    std::uint32_t count = 0;
    std::uint32_t clock_mhz = 0;
    std::uint32_t max_threads = 0;
    std::uint32_t max_blocks = 0;
    std::uint32_t registers = 0;
    std::uint32_t shared_bytes = 0;
    std::uint32_t fp32_to_fp64_ratio = 0;
  } sm;

  struct Block {
    std::uint32_t max_threads = 0;
    std::uint32_t max_x = 0, max_y = 0, max_z = 0;
    std::uint32_t registers = 0;
    std::uint32_t shared_bytes = 0;           ///< without opting in
    std::uint32_t shared_optin_bytes = 0;     ///< after cudaFuncSetAttribute(MaxDynamicSharedMemorySize)
    std::uint32_t shared_reserved_bytes = 0;  ///< taken by the system from the SM's shared memory, per block
  } block;

  struct Thread {
    std::uint32_t max_registers = 0;
    std::uint32_t max_local_bytes = 0;
  } thread;

  struct Grid {
    std::uint32_t max_x = 0, max_y = 0, max_z = 0;
    std::uint32_t max_resident = 0;  ///< kernels that run at the same time
  } grid;

  struct Cluster {
    std::uint32_t max_blocks = 0;              ///< 1 where clusters do not exist
    std::uint32_t max_blocks_nonportable = 0;  ///< after cudaFuncAttributeNonPortableClusterSizeAllowed
  } cluster;

  /// Granularity in which a launch takes resources; the occupancy calculation needs it.
  struct Allocation {
    std::uint32_t registers_per_warp = 0;
    std::uint32_t warps = 0;
    std::uint32_t shared_bytes = 0;
  } allocation;

  struct Memory {
    std::uint64_t size_bytes = 0;
    std::uint32_t clock_mhz = 0;  ///< as cudaDeviceProp reports it: bandwidth = 2 · clock · bus / 8
    std::uint32_t bus_bits = 0;
    std::uint32_t page_bytes = 0;
    std::uint32_t constant_bytes = 0;
    std::uint32_t max_pitch_bytes = 0;
    bool ecc = false;
  } memory;

  struct L2 {
    std::uint32_t size_bytes = 0;
    std::uint32_t persisting_bytes = 0;  ///< 0 where an L2 set-aside does not exist
    std::uint32_t max_window_bytes = 0;
  } l2;

  struct Texture {
    std::uint32_t alignment_bytes = 0, pitch_alignment_bytes = 0;
    std::uint32_t max_1d = 0, max_1d_linear = 0, max_1d_mipmapped = 0;
    std::uint32_t max_1d_layered = 0, max_1d_layers = 0;
    std::uint32_t max_2d_width = 0, max_2d_height = 0;
    std::uint32_t max_2d_linear_width = 0, max_2d_linear_height = 0, max_2d_linear_pitch_bytes = 0;
    std::uint32_t max_2d_mipmapped_width = 0, max_2d_mipmapped_height = 0;
    std::uint32_t max_2d_gather_width = 0, max_2d_gather_height = 0;
    std::uint32_t max_2d_layered_width = 0, max_2d_layered_height = 0, max_2d_layers = 0;
    std::uint32_t max_3d_width = 0, max_3d_height = 0, max_3d_depth = 0;
    std::uint32_t max_3d_alternate_width = 0, max_3d_alternate_height = 0, max_3d_alternate_depth = 0;
    std::uint32_t max_cubemap = 0, max_cubemap_layered = 0, max_cubemap_layers = 0;
  } texture;

  struct Surface {
    std::uint32_t alignment_bytes = 0;
    std::uint32_t max_1d = 0, max_1d_layered = 0, max_1d_layers = 0;
    std::uint32_t max_2d_width = 0, max_2d_height = 0;
    std::uint32_t max_2d_layered_width = 0, max_2d_layered_height = 0, max_2d_layers = 0;
    std::uint32_t max_3d_width = 0, max_3d_height = 0, max_3d_depth = 0;
    std::uint32_t max_cubemap = 0, max_cubemap_layered = 0, max_cubemap_layers = 0;
  } surface;

  std::uint32_t copy_engines = 0;

  TimingSpec timing;

  std::vector<std::string> proposed;   ///< parts of hardware that no such GPU has, by name; in this order
  std::vector<PartValue> part_values;  ///< of each key the last one given; also of parts that are not in `proposed`

  static constexpr std::uint32_t kWarpSize = 32;  // every CUDA device; the executor is built on it
  std::uint32_t max_warps_per_sm() const { return sm.max_threads / kWarpSize; }
};

/// A value that is one of a few names, kept as the number of the name.
struct NamedChoice {
  std::uint8_t* value;
  std::span<const char* const> names;
};

/// One key of a device file and where its value is kept.
struct DeviceField {
  using Slot = std::variant<std::uint32_t*, std::uint64_t*, bool*, std::string*, ComputeCapability*, NamedChoice>;
  std::string_view key;  ///< dotted: "sm.max_threads"
  Slot (*slot)(DeviceSpec&);
  std::string_view meaning;
};

/// Every key a device file may have besides `inherits`, in the order of the documentation.
std::span<const DeviceField> DeviceFields();

/// The value of a field as a device file would give it.
std::string FieldText(const DeviceField& field, const DeviceSpec& spec);

/// What one device file said besides the values it set.
struct DeviceText {
  std::string inherits;                ///< id behind `inherits:`, empty when there is none
  std::vector<std::string_view> keys;  ///< keys of DeviceFields() that the text gave
};

/// Sets in `spec` what `text` (the YAML of `file`) gives; keys it does not name stay as they are. An unknown key is an
/// error that names the nearest right one.
Result<DeviceText> ApplyDeviceText(std::string_view text, std::string_view file, DeviceSpec& spec);

/// Sets one key, as a line of a device file would. `place`: where it was asked for, for errors: "--set KEY=VALUE".
Status SetDeviceKey(const std::string& key, const std::string& value, std::string_view place, DeviceSpec& spec);

/// The parts of `names`, separated by commas, blanks or `+`, in place of those that the device has; "none" and "": no
/// parts.
void Propose(std::string_view names, DeviceSpec& spec);

/// What tells the device from others: "v100", or "v100 + lazy-ctas" with proposed parts.
std::string DeviceLabel(const DeviceSpec& spec);

/// "50 MiB" -> 52428800; the unit (KiB, MiB, GiB) is optional.
std::optional<std::uint64_t> ParseNumber(std::string_view text);

/// One sentence about the first limit that contradicts another, if any.
Status ValidateDevice(const DeviceSpec& spec);

}  // namespace gridloom::sim
