#include "rewriter/image/select.h"

#include <algorithm>
#include <tuple>

namespace gridloom::image {
namespace {

// Capabilities that have a device file, configs/devices/sm_*.yaml (a test compares).
constexpr ComputeCapability kKnown[] = {{5, 0}, {5, 2}, {6, 0}, {6, 1},  {7, 0},  {7, 5},  {8, 0},  {8, 6},
                                        {8, 7}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};

/// Orders usable PTX by how much it knows about the device.
auto Rank(const Entry& entry) {
  const int specificity = entry.arch.scope == ArchScope::kExact ? 2 : entry.arch.scope == ArchScope::kFamily ? 1 : 0;
  return std::tuple(entry.arch.capability, specificity, entry.version_major, entry.version_minor);
}

bool HasPtx(const Container& container) {
  return std::ranges::any_of(container.entries, [](const Entry& entry) { return entry.kind == EntryKind::kPtx; });
}

/// "sm_75, sm_80": the architectures of one kind, sorted, each once.
std::string Archs(const ImageSet& set, EntryKind kind) {
  std::vector<Arch> archs;
  for (const Container& container : set.containers) {
    for (const Entry& entry : container.entries) {
      if (entry.kind == kind) archs.push_back(entry.arch);
    }
  }
  const auto key = [](const Arch& arch) { return std::tuple(arch.capability, arch.scope); };
  std::ranges::sort(archs, {}, key);
  const auto [first, last] = std::ranges::unique(archs);
  archs.erase(first, last);
  std::string text;
  for (const Arch& arch : archs) text += (text.empty() ? "" : ", ") + arch.text();
  return text;
}

Error NoUsablePtx(const ImageSet& set, ComputeCapability device) {
  const std::string ptx = Archs(set, EntryKind::kPtx);
  const std::string cubins = Archs(set, EntryKind::kCubin);
  const std::string flag =
      "-gencode arch=compute_" + std::to_string(device.sm()) + ",code=compute_" + std::to_string(device.sm());
  if (ptx.empty() && cubins.empty()) return Error{"the image holds no device code"};
  if (ptx.empty()) {
    return Error{"the image holds machine code for " + cubins + " but no PTX, and Gridloom runs PTX; rebuild with " +
                 flag};
  }
  const auto fitting = FittingCapability(set, device);
  const std::string other = fitting ? "; choose a device of compute capability " + fitting->text() + " (--device sm_" +
                                          std::to_string(fitting->sm()) + ") or rebuild with "
                                    : "; rebuild with ";
  return Error{"the image's PTX is for " + ptx + ", which a device of compute capability " + device.text() +
               " does not run" + other + flag};
}

/// As the CUDA Programming Guide, "Binary Compatibility", has it: code runs on later devices of the same major number,
/// code with architecture-specific features (`a`) on its own device only.
bool IsCodeFor(const Entry& entry, ComputeCapability device) {
  const ComputeCapability code = entry.arch.capability;
  if (entry.kind != EntryKind::kCubin || code.major != device.major) return false;
  return entry.arch.scope == ArchScope::kExact ? code.minor == device.minor : code.minor <= device.minor;
}

bool HasCodeFor(const Container& container, ComputeCapability device) {
  return std::ranges::any_of(container.entries, [&](const Entry& entry) { return IsCodeFor(entry, device); });
}

/// For a container that carries machine code for the device, but PTX only for a newer one: that PTX, the least new
/// first. NVIDIA's libraries (libcudadevrt, cuRAND) are built so: machine code for every architecture, PTX for the last
/// one. Gridloom can run it on any device, since a newer instruction set only adds.
const Entry* StandIn(const Container& container, ComputeCapability device) {
  if (!HasCodeFor(container, device)) return nullptr;
  const Entry* best = nullptr;
  for (const Entry& entry : container.entries) {
    if (entry.kind != EntryKind::kPtx || entry.arch.capability < device) continue;
    if (best == nullptr || Rank(entry) < Rank(*best)) best = &entry;
  }
  return best;
}

/// The PTX of every container that has some fits the device. Parts of an -rdc program may be stood in for, but not all
/// of them.
bool RunsOn(const ImageSet& set, ComputeCapability device) {
  bool stands_in = false, fits = false;
  for (const Container& container : set.containers) {
    if (!HasPtx(container)) continue;
    if (SelectPtx(container, device) != nullptr) fits = true;
    else if (container.relocatable && StandIn(container, device) != nullptr) stands_in = true;
    else return false;
  }
  return fits || !stands_in;
}

}  // namespace

std::span<const ComputeCapability> KnownCapabilities() { return kKnown; }

const Entry* SelectPtx(const Container& container, ComputeCapability device) {
  const Entry* best = nullptr;
  for (const Entry& entry : container.entries) {
    if (entry.kind != EntryKind::kPtx || !entry.arch.PtxRunsOn(device)) continue;
    if (best == nullptr || Rank(entry) > Rank(*best)) best = &entry;
  }
  return best;
}

const Entry* SelectCode(const Container& container, ComputeCapability device) {
  const Entry* best = nullptr;
  for (const Entry& entry : container.entries) {
    if (IsCodeFor(entry, device) && (best == nullptr || Rank(entry) > Rank(*best))) best = &entry;
  }
  return best;
}

bool HasPtxFor(const ImageSet& set, ComputeCapability device) {
  return std::ranges::any_of(set.containers,
                             [&](const Container& container) { return SelectPtx(container, device) != nullptr; });
}

namespace {

Result<std::vector<const Entry*>> SelectTexts(const ImageSet& set, ComputeCapability device, bool stand_ins) {
  // In an -rdc program the first container holds the linked machine code only; the parts hold the PTX.
  std::vector<const Entry*> texts;
  bool complete = true;
  for (const Container& container : set.containers) {
    const Entry* entry = SelectPtx(container, device);
    if (entry == nullptr && (stand_ins || !container.relocatable)) entry = StandIn(container, device);
    if (entry != nullptr) texts.push_back(entry);
    const bool needed = container.relocatable || HasPtx(container);
    complete = complete && (entry != nullptr || !needed || container.entries.empty());
  }
  if (texts.empty() || !complete) return NoUsablePtx(set, device);
  return texts;
}

}  // namespace

Result<std::vector<const Entry*>> SelectPtx(const ImageSet& set, ComputeCapability device) {
  return SelectTexts(set, device, RunsOn(set, device));
}

Result<std::vector<const Entry*>> SelectPartsToLink(const ImageSet& set, ComputeCapability device) {
  return SelectTexts(set, device, true);
}

bool HasMachineCode(const ImageSet& set, ComputeCapability device) {
  return std::ranges::any_of(set.containers, [&](const Container& container) { return HasCodeFor(container, device); });
}

std::optional<ComputeCapability> FittingCapability(const ImageSet& set, ComputeCapability preferred) {
  if (!set.HasKind(EntryKind::kPtx)) return std::nullopt;
  if (RunsOn(set, preferred)) return preferred;
  const auto above =
      std::ranges::find_if(kKnown, [&](auto candidate) { return candidate > preferred && RunsOn(set, candidate); });
  if (above != std::end(kKnown)) return *above;
  for (auto candidate = std::rbegin(kKnown); candidate != std::rend(kKnown); ++candidate) {
    if (*candidate < preferred && RunsOn(set, *candidate)) return *candidate;
  }
  return std::nullopt;
}

}  // namespace gridloom::image
