#include "rewriter/machine/slice/attributes.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace gridloom::machine {
namespace {

struct AttributeHead {
  std::uint8_t format;
  std::uint8_t code;
  std::uint16_t value;
};
static_assert(sizeof(AttributeHead) == 4);

// kKparamInfo: 0, ordinal and offset, size above space, alignment and bank as ptxas has them.
constexpr std::size_t kParamNumbers = 3;
constexpr unsigned kParamBytesAt = 18;
constexpr std::uint32_t kParamPlace = 0x1F000;

}  // namespace

void Attribute::SetNumber(std::size_t offset, std::uint32_t number) {
  if (offset + sizeof number <= data.size()) std::memcpy(data.data() + offset, &number, sizeof number);
}

Attribute SizedAttribute(AttributeCode code, const std::vector<std::uint32_t>& numbers) {
  Attribute made{AttributeFormat::kSized, code, static_cast<std::uint16_t>(numbers.size() * sizeof(std::uint32_t))};
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  made.data.assign(bytes, bytes + made.value);
  return made;
}

Result<std::vector<Attribute>> ReadAttributes(image::Bytes bytes) {
  std::vector<Attribute> attributes;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto head = image::ReadAt<AttributeHead>(bytes, at);
    if (!head) return Error{"an attribute is cut off at byte " + std::to_string(at)};
    if (head->format < 1 || head->format > 4)
      return Error{"an attribute at byte " + std::to_string(at) + " has the format " + std::to_string(head->format)};
    Attribute attribute{static_cast<AttributeFormat>(head->format), static_cast<AttributeCode>(head->code),
                        head->value};
    at += sizeof *head;
    if (attribute.format == AttributeFormat::kSized) {
      const auto data = image::Slice(bytes, at, head->value);
      if (!data)
        return Error{"an attribute of " + std::to_string(head->value) + " bytes at byte " + std::to_string(at) +
                     " ends outside its section"};
      attribute.data.assign(data->begin(), data->end());
      at += head->value;
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

std::vector<std::byte> WriteAttributes(const std::vector<Attribute>& attributes) {
  std::vector<std::byte> bytes;
  for (const Attribute& attribute : attributes) {
    const AttributeHead head{static_cast<std::uint8_t>(attribute.format), static_cast<std::uint8_t>(attribute.code),
                             attribute.value};
    const auto* const from = reinterpret_cast<const std::byte*>(&head);
    bytes.insert(bytes.end(), from, from + sizeof head);
    bytes.insert(bytes.end(), attribute.data.begin(), attribute.data.end());
  }
  return bytes;
}

// For each branch: its place, a number that is 0, how many targets there are, and the targets.
Result<BranchTargets> ReadBranchTargets(const std::vector<Attribute>& attributes) {
  constexpr std::size_t kHead = 3 * sizeof(std::uint32_t);
  BranchTargets targets;
  for (const Attribute& attribute : attributes) {
    if (attribute.code != AttributeCode::kBranchTargets) continue;
    for (std::size_t at = 0; at < attribute.data.size();) {
      const std::uint64_t count = attribute.Number(at + 8);
      if (attribute.data.size() - at < kHead || attribute.data.size() - at - kHead < count * sizeof(std::uint32_t) ||
          attribute.Number(at + 4) != 0)
        return Error{"its list of branch targets is broken"};
      std::vector<std::uint32_t>& listed = targets[attribute.Number(at)];
      at += kHead;
      for (std::uint64_t number = 0; number < count; ++number, at += sizeof(std::uint32_t))
        listed.push_back(attribute.Number(at));
    }
  }
  return targets;
}

std::optional<ParamRecord> ReadParam(const Attribute& attribute) {
  if (attribute.data.size() != kParamNumbers * sizeof(std::uint32_t) || attribute.Number(0) != 0) return std::nullopt;
  const ParamRecord param{attribute.Number(4) & 0xFFFF, attribute.Number(4) >> 16, attribute.Number(8)};
  if (attribute.code == AttributeCode::kKparamInfoV2) return param;
  if (attribute.code != AttributeCode::kKparamInfo) return std::nullopt;
  return ParamRecord{param.ordinal, param.offset, param.bytes >> kParamBytesAt};
}

Attribute ParamAttribute(AttributeCode code, const ParamRecord& param) {
  const std::uint32_t place = param.ordinal | param.offset << 16;
  return SizedAttribute(
      code,
      {0, place, code == AttributeCode::kKparamInfoV2 ? param.bytes : param.bytes << kParamBytesAt | kParamPlace});
}

std::uint32_t ParamCount(const std::vector<Attribute>& attributes) {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(attributes, [](const Attribute& attribute) { return ReadParam(attribute).has_value(); }));
}

const Attribute* FindAttribute(const std::vector<Attribute>& attributes, AttributeCode code) {
  const auto found = std::ranges::find(attributes, code, &Attribute::code);
  return found == attributes.end() ? nullptr : &*found;
}

}  // namespace gridloom::machine
