// The attributes of a cubin's sections .nv.info and .nv.info.KERNEL: what the driver has to know of kernels beside
// their code. A record is a format, a code and two bytes; of format kSized these are the size of what follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/machine/flow.h"
#include "rewriter/support/result.h"

namespace gridloom::machine {

enum class AttributeFormat : std::uint8_t { kNone = 1, kByte = 2, kHalf = 3, kSized = 4 };

/// Codes as cuobjdump names them (EIATTR_…).
enum class AttributeCode : std::uint8_t {
  kMaxThreads = 0x05,
  kParamCbank = 0x0A,
  kExterns = 0x0F,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kKparamInfo = 0x17,
  kCbankParamSize = 0x19,
  kMaxregCount = 0x1B,
  kExitOffsets = 0x1C,
  kCtaidReadOffsets = 0x1D,
  kMaxStackSize = 0x23,
  kRegcount = 0x2F,
  kBranchTargets = 0x34,
  kCtaPerCluster = 0x3D,
  kExplicitCluster = 0x3E,
  kMaxClusterRank = 0x3F,
  kKparamInfoV2 = 0x45,
};

struct Attribute {
  AttributeFormat format = AttributeFormat::kNone;
  AttributeCode code{};
  std::uint16_t value = 0;        ///< of kSized: how many bytes `data` has
  std::vector<std::byte> data{};  ///< of kSized

  /// The 32-bit number at that place of `data`; 0 when it is not all there.
  std::uint32_t Number(std::size_t offset) const { return image::ReadAt<std::uint32_t>(data, offset).value_or(0); }
  void SetNumber(std::size_t offset, std::uint32_t number);
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// Of kSized, with these numbers in it.
Attribute SizedAttribute(AttributeCode code, const std::vector<std::uint32_t>& numbers);

Result<std::vector<Attribute>> ReadAttributes(image::Bytes bytes);
std::vector<std::byte> WriteAttributes(const std::vector<Attribute>& attributes);

/// Where branches by tables lead, as the attribute kBranchTargets lists them; an error when a list is cut off.
Result<BranchTargets> ReadBranchTargets(const std::vector<Attribute>& attributes);

/// A parameter, as one of these attributes describes it: kKparamInfo, or kKparamInfoV2 of kernels whose parameters have
/// more than 4 KB.
struct ParamRecord {
  std::uint32_t ordinal = 0, offset = 0, bytes = 0;

  friend bool operator==(const ParamRecord&, const ParamRecord&) = default;
};
/// Nothing when it is another attribute, or no such record.
std::optional<ParamRecord> ReadParam(const Attribute& attribute);
/// Of code kKparamInfo or kKparamInfoV2; as ptxas writes one of a parameter of a few bytes.
Attribute ParamAttribute(AttributeCode code, const ParamRecord& param);
/// How many parameters they describe.
std::uint32_t ParamCount(const std::vector<Attribute>& attributes);

/// The first one of that code; nullptr when there is none.
const Attribute* FindAttribute(const std::vector<Attribute>& attributes, AttributeCode code);

}  // namespace gridloom::machine
