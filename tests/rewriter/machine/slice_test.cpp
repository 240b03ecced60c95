// Slices of machine code: cubins of this project's kernels (slices.cu), rewritten, proven, carried out on numbers, and
// broken in every way that one bit can break them.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/attributes.h"
#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/ended_execute.h"
#include "rewriter/machine/slice/execute.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/proof.h"
#include "rewriter/machine/slice/slice_cubin.h"
#include "rewriter/passes/slice_range.h"

namespace gridloom::machine {
namespace {

const std::vector<unsigned> kArchitecturesOfTests = {75, 80, 90};

std::vector<std::byte> CubinOf(unsigned sm) {
  std::ifstream file("tests/rewriter/machine/slices.sm_" + std::to_string(sm) + ".cubin", std::ios::binary);
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = image::AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

const SlicedKernel& KernelNamed(const SlicedCubin& sliced, const std::string& part) {
  for (const SlicedKernel& kernel : sliced.kernels) {
    if (kernel.name.find(part) != std::string::npos) return kernel;
  }
  FAIL("no kernel " << part);
  return sliced.kernels.front();
}

TEST_CASE("CubinFile_WrittenUnchanged_HasTheSameBytes") {
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto bytes = CubinOf(sm);
    const auto cubin = CubinFile::Read(bytes);
    REQUIRE(cubin.ok());
    CHECK(cubin->sm() == sm);
    CHECK(cubin->Write() == bytes);
  }
}

TEST_CASE("CubinFile_GrownSection_KeepsAllOthers") {
  const auto bytes = CubinOf(80);
  auto cubin = *CubinFile::Read(bytes);
  const std::size_t grown = *cubin.Find(".nv.constant0._Z5AxisXPfi");
  auto data = cubin.sections()[grown].data;
  data.resize(data.size() + 200);
  REQUIRE(cubin.SetData(grown, data).ok());
  const auto again = CubinFile::Read(cubin.Write());
  REQUIRE(again.ok());
  for (std::size_t number = 0; number < again->sections().size(); ++number)
    CHECK(again->sections()[number].data == cubin.sections()[number].data);
  CHECK_FALSE(cubin.SetData(grown, {}).ok());
}

TEST_CASE("SliceCubin_KernelsOfTests_AreSlicedOrSayWhyNot") {
  const std::map<std::string, std::string> whole = {{"SpinsOnAtomic", "a loop may wait for what another CTA writes"},
                                                    {"SpinsOnVolatile", "a loop may wait for what another CTA writes"},
                                                    {"CountsFlags", "a loop may wait for what another CTA writes"},
                                                    {"GridBarrier", "it synchronises the whole grid"},
                                                    {"GridId", "it reads %gridid"},
                                                    {"7Cluster", "it is launched in clusters"}};
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto sliced = SliceCubin(CubinOf(sm));
    REQUIRE(sliced.ok());
    for (const SlicedKernel& kernel : sliced->kernels) {
      INFO("sm_" << sm << " " << kernel.name << ": " << kernel.why_whole);
      std::string expected;
      for (const auto& [name, why] : whole) {
        if (kernel.name.find(name) != std::string::npos) expected = why;
      }
      // Lanes that are done wait for the others in a loop of its own there, which hides the form of a retry.
      if (sm == 75 && kernel.name.find("Retry") != std::string::npos) expected = "a loop may wait";
      if (expected.empty()) CHECK(kernel.why_whole.empty());
      else CHECK(kernel.why_whole.find(expected) != std::string::npos);
    }
    CHECK(KernelNamed(*sliced, "AllAxes").grid_reads >= 2);
    CHECK(KernelNamed(*sliced, "AllAxes").sites == 3);
    CHECK(KernelNamed(*sliced, "NoParams").own_bytes == 0);
  }
}

/// A Domain of execute.h whose values are numbers.
struct Numbers {
  using Value = std::uint32_t;
  std::uint32_t ctaid = 0;
  std::map<std::int32_t, std::uint32_t> constants{};

  Value Number(std::uint32_t number) const { return number; }
  std::uint32_t active = 0;  ///< lanes that come along
  unsigned lane = 0;
  Value Special(std::string_view name) const {
    return name == "SR_CTAID.X" ? ctaid : name == "SR_LTMASK" ? (1U << lane) - 1 : 0xDEADBEEF;
  }
  Value Constant(std::int32_t offset) const { return constants.at(offset); }
  Value Add(Value a, Value b) const { return a + b; }
  Value Negate(Value a) const { return 0 - a; }
  Value Multiply(Value a, Value b) const { return a * b; }
  Value High(Value a, Value b) const { return static_cast<Value>(std::uint64_t{a} * b >> 32); }
  Value ShiftRight(Value a, Value b) const { return b > 31 ? 0 : a >> b; }
  Value Or(Value a, Value b) const { return a | b; }
  Value And(Value a, Value b) const { return a & b; }
  Value ShiftLeft(Value a, Value b) const { return a << b; }
  Value PopCount(Value a) const { return static_cast<Value>(std::popcount(a)); }
  Value Carry(Value a, Value b) const { return a + b < a ? 1 : 0; }
  Value Any(Value a) const { return a != 0 ? 1 : 0; }
  Value Active(unsigned) const { return active; }
};

/// A sliced kernel beside its original.
struct Pair {
  CubinFile original, sliced;
  SlicedKernel kernel;
  KernelParts before, after;

  image::Bytes code(const CubinFile& cubin) const {
    return cubin.sections()[(&cubin == &original ? before : after).text].data;
  }
  std::size_t words() const { return code(original).size() / kWordBytes; }
};

Pair PairOf(unsigned sm, const std::string& name) {
  const auto bytes = CubinOf(sm);
  const auto sliced = *SliceCubin(bytes);
  const SlicedKernel& kernel = KernelNamed(sliced, name);
  auto original = *CubinFile::Read(bytes);
  auto after = *CubinFile::Read(sliced.bytes);
  const auto parts = *ReadKernelParts(original, kernel.name);
  const auto parts_after = *ReadKernelParts(after, SlicedName(kernel.name));
  return {std::move(original), std::move(after), kernel, parts, parts_after};
}

/// Runs what was appended for the original instruction at a word; the value it leaves.
std::uint32_t ValueAt(const Pair& pair, std::size_t at, Numbers numbers) {
  const unsigned sm = pair.original.sm();
  const auto code = pair.code(pair.sliced);
  const auto site = *Decode(ReadWord(pair.code(pair.original), at * kWordBytes), sm);
  Executor<Numbers> executor(numbers);
  std::size_t number = at;
  for (int steps = 0; steps < 100; ++steps) {
    const auto instruction = Decode(ReadWord(code, number * kWordBytes), sm);
    REQUIRE(instruction);
    if (instruction->format->name == "BRA") {
      const std::string text = Text(*instruction, number * kWordBytes);
      number = std::stoull(text.substr(text.find("0x")), nullptr, 16) / kWordBytes;
      if (number == at + 1) break;
      continue;
    }
    REQUIRE(executor.Step(*instruction).ok());
    ++number;
  }
  REQUIRE(number == at + 1);
  const RegisterSet written = UseOf(site).written;
  return written.general.any() ? executor.general.at(written.general._Find_first())
                               : executor.uniform.at(written.uniform._Find_first());
}

/// A slice of some grid and one of its CTAs.
struct Launch {
  passes::GridShape grid{};
  std::uint64_t first = 0;
  std::uint32_t ctaid = 0;
};

Launch RandomLaunch(std::mt19937& random, int round) {
  const auto upto = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(1, most)(random); };
  const auto below = [&](std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
  };
  const passes::GridShape grid{upto(round % 2 == 0 ? 9 : 0x7FFFFFFF), upto(round % 3 == 0 ? 5 : 65535),
                               upto(round % 3 == 1 ? 65535 : 3)};
  const std::uint64_t first = below(grid.count());
  return {grid, first, static_cast<std::uint32_t>(below(passes::LongestSlice(grid, first)))};
}

/// Every read of %ctaid of the kernel in a number of launches; how many reads there are.
std::size_t CheckSites(const Pair& pair, std::mt19937& random, int rounds) {
  std::size_t sites = 0;
  for (std::size_t at = 0; at < pair.words(); ++at) {
    const auto site = *Decode(ReadWord(pair.code(pair.original), at * kWordBytes), pair.original.sm());
    const std::string special(SpecialReadOf(site));
    if (!special.starts_with("SR_CTAID")) continue;
    ++sites;
    for (int round = 0; round < rounds; ++round) {
      const Launch launch = RandomLaunch(random, round);
      Numbers numbers{.ctaid = launch.ctaid};
      for (const passes::HiddenParam& hidden : pair.kernel.hidden)
        numbers.constants[static_cast<std::int32_t>(pair.after.first_param + hidden.offset)] =
            static_cast<std::uint32_t>(passes::HiddenValue(hidden.role, launch.grid, launch.first, 0));
      const passes::GridShape cta = passes::CtaAt(launch.grid, launch.first + launch.ctaid);
      const std::uint32_t expected = special.back() == 'X' ? cta.x : special.back() == 'Y' ? cta.y : cta.z;
      CHECK(ValueAt(pair, at, numbers) == expected);
    }
  }
  return sites;
}

TEST_CASE("AppendedCode_CarriedOut_FindsTheCtaOfTheOriginalGrid") {
  std::mt19937 random(7);
  for (const unsigned sm : kArchitecturesOfTests) {
    for (const char* name : {"AllAxes", "UniformIndex", "ManyRegisters"}) {
      const Pair pair = PairOf(sm, name);
      REQUIRE(pair.kernel.why_whole.empty());
      CHECK(CheckSites(pair, random, 200) == pair.kernel.sites);
    }
  }
}

/// One that a branch in the form leads to.
std::size_t TargetOf(const Pair& pair, std::size_t word) {
  const auto branch = *Decode(ReadWord(pair.code(pair.sliced), word * kWordBytes), pair.original.sm());
  return static_cast<std::size_t>(BranchTargetOf(branch, static_cast<std::uint32_t>(word))) / kWordBytes;
}

/// Counts by address.
using Counts = std::map<std::uint64_t, std::uint64_t>;

/// Lanes that come to an end together.
void RunEnd(const Pair& pair, std::size_t word, std::uint32_t lanes, const Numbers& launch, Counts& counts) {
  struct Lane {
    Numbers numbers;
    std::optional<EndedExecutor<Numbers>> executor{};
  };
  std::list<Lane> all;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    Lane& one = all.emplace_back(Lane{launch});
    one.numbers.lane = lane;
    one.executor.emplace(one.numbers);
  }
  for (std::size_t at = TargetOf(pair, word); !all.empty(); ++at) {
    const auto instruction = Decode(ReadWord(pair.code(pair.sliced), at * kWordBytes), pair.original.sm());
    REQUIRE(instruction);
    const bool end = instruction->format->flow == Flow::kExit;
    std::uint32_t active = 0;
    for (const Lane& one : all) active |= 1U << one.numbers.lane;
    for (Lane& one : all) one.numbers.active = active;
    for (Lane& one : all) {
      if (!end) REQUIRE(one.executor->StepEnded(*instruction).ok());
    }
    for (auto one = all.begin(); one != all.end();) {
      for (const auto& added : one->executor->additions)
        counts[std::uint64_t{added.high} << 32 | added.low] += added.by;
      one->executor->additions.clear();
      const bool ends = end && (instruction->guard == kTrue ||
                                (one->executor->predicates.at(instruction->guard) != 0) != instruction->guard_negated);
      one = ends ? all.erase(one) : std::next(one);
    }
  }
}

/// The threads of a CTA end in random groups and places; how many places there are.
std::size_t CheckEnds(const Pair& pair, std::mt19937& random, int rounds) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < pair.words(); ++at) {
    const auto end = *Decode(ReadWord(pair.code(pair.original), at * kWordBytes), pair.original.sm());
    if (end.format->flow == Flow::kExit) places.push_back(at);
  }
  const auto place_of = [&](passes::HiddenRole role) {
    const auto hidden = std::ranges::find(pair.kernel.hidden, role, &passes::HiddenParam::role);
    return static_cast<std::int32_t>(pair.after.first_param + hidden->offset);
  };
  for (int round = 0; round < rounds; ++round) {
    const std::uint32_t ctaid = random() & 0x3FFFFFFF;
    const std::uint32_t shift = random() % 20;
    std::uint64_t table = random();
    table = round % 5 == 0 ? 0 : table << 8 | (std::uint64_t{1} << 45);
    Numbers launch{.ctaid = ctaid};
    launch.constants = {{place_of(passes::HiddenRole::kEndedTable), static_cast<std::uint32_t>(table)},
                        {place_of(passes::HiddenRole::kEndedTable) + 4, static_cast<std::uint32_t>(table >> 32)},
                        {place_of(passes::HiddenRole::kEndedShift), shift}};
    const std::int32_t descriptor = GlobalDescriptorAt(pair.original.sm());
    if (descriptor != 0) launch.constants.insert({{descriptor, 1}, {descriptor + 4, 2}});
    Counts counts;
    const unsigned threads = 1 + random() % 200;
    for (unsigned first = 0; first < threads; first += 32) {
      std::uint32_t left = threads - first >= 32 ? ~0U : (1U << (threads - first)) - 1;
      while (left != 0) {
        std::uint32_t group = left & static_cast<std::uint32_t>(random());
        if (group == 0) group = left;
        const std::size_t place = places[random() % places.size()];
        RunEnd(pair, place, group, launch, counts);
        left &= ~group;
      }
    }
    const Counts expected = table == 0 ? Counts() : Counts{{table + 4 * std::uint64_t{ctaid >> shift}, threads}};
    CHECK(counts == expected);
  }
  return places.size();
}

TEST_CASE("EndedCode_CarriedOut_CountsEveryThreadOnce") {
  std::mt19937 random(9);
  for (const unsigned sm : kArchitecturesOfTests) {
    for (const char* name : {"AxisX", "AllAxes", "LastBlock", "Calls", "ManyRegisters"}) {
      const Pair pair = PairOf(sm, name);
      INFO("sm_" << sm << " " << name);
      REQUIRE(pair.kernel.exits != 0);
      CHECK(CheckEnds(pair, random, 40) == pair.kernel.exits);
    }
  }
}

TEST_CASE("SliceCubin_FormThatCounts_HasNoMoreRegistersForIt") {
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto sliced = *SliceCubin(CubinOf(sm));
    for (const SlicedKernel& kernel : sliced.kernels) {
      INFO("sm_" << sm << " " << kernel.name);
      if (!kernel.why_whole.empty()) continue;
      CHECK(kernel.exits != 0);
      if (kernel.sites == 0) CHECK(kernel.registers <= std::max((kernel.registers_before + 7) / 8 * 8, 32U));
    }
  }
}

/// The pair with one bit of the sliced kernel's code turned.
Pair WithBit(const Pair& pair, std::size_t word, unsigned bit) {
  Pair broken = pair;
  auto code = broken.sliced.sections()[pair.after.text].data;
  code[word * kWordBytes + bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  REQUIRE(broken.sliced.SetData(pair.after.text, code).ok());
  return broken;
}

// What the proof still takes was appended, and is a longer stall, another yield, more waiting, the operand cache, or
// does the same: the sign of zero, a product's lower half without signs, sources in another order.
void CheckBits(const Pair& pair, std::size_t word, std::mt19937& random) {
  const bool same = word < pair.words() && ReadWord(pair.code(pair.original), word * kWordBytes) ==
                                               ReadWord(pair.code(pair.sliced), word * kWordBytes);
  for (unsigned bit = same ? word % 16 : 0; bit < 128; bit += same ? 16 : 1) {
    const Pair broken = WithBit(pair, word, bit);
    if (!ProveKernel(broken.original, broken.sliced, broken.kernel).ok()) continue;
    INFO("sm_" << pair.original.sm() << " " << pair.kernel.name << " word " << word << " bit " << bit);
    CHECK_FALSE(same);
    if (bit < 105) {
      CheckSites(broken, random, 3);
      CheckEnds(broken, random, 2);
    }
  }
}

/// Proofs take a dozen times as long with sanitizers: there every eighth word has to do.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr std::size_t kProvedWords = 8;
#define GRIDLOOM_FEWER_PROOFS
#endif
#endif
#if !defined(GRIDLOOM_FEWER_PROOFS)
constexpr std::size_t kProvedWords = 1;
#endif

TEST_CASE("ProveKernel_EveryBitOfTheCode_Counts") {
  std::mt19937 random(5);
  for (const unsigned sm : kArchitecturesOfTests) {
    for (const char* name : {"AllAxes", "UniformIndex", "Stride"}) {
      const Pair pair = PairOf(sm, name);
      REQUIRE(ProveKernel(pair.original, pair.sliced, pair.kernel).ok());
      const std::size_t all = pair.code(pair.sliced).size() / kWordBytes;
      for (std::size_t word = 0; word < all; word += kProvedWords) {
        const auto instruction = Decode(ReadWord(pair.code(pair.sliced), word * kWordBytes), sm);
        REQUIRE(instruction);
        const bool padding = word >= pair.words() && (instruction->format->name == "NOP" ||
                                                      BranchTargetOf(*instruction, static_cast<std::uint32_t>(word)) ==
                                                          static_cast<std::int64_t>(word * kWordBytes));
        if (!padding) CheckBits(pair, word, random);
      }
    }
  }
}

TEST_CASE("ProveFile_ChangedElsewhere_Fails") {
  const auto bytes = CubinOf(80);
  const auto sliced = *SliceCubin(bytes);
  const auto original = *CubinFile::Read(bytes);
  const auto after = *CubinFile::Read(sliced.bytes);
  REQUIRE(ProveFile(original, after, sliced.kernels).ok());
  for (std::size_t number = 0; number < after.sections().size(); ++number) {
    const CubinFile::Section& section = after.sections()[number];
    if (section.data.empty() || section.name.starts_with(".text.") || section.name.starts_with(".nv.constant0.") ||
        section.name.starts_with(".nv.info.") || section.name.ends_with(SlicedName("")))
      continue;  // ProveKernel's
    CubinFile broken = after;
    auto data = section.data;
    data[data.size() / 2] ^= std::byte{1};
    REQUIRE(broken.SetData(number, data).ok());
    INFO(section.name);
    const auto again = CubinFile::Read(broken.Write());
    CHECK_FALSE((again.ok() && ProveFile(original, *again, sliced.kernels).ok()));
  }
}

/// The cubin with another number in one of a kernel's attributes.
std::vector<std::byte> WithAttribute(unsigned sm, const std::string& kernel, AttributeCode code, std::size_t at,
                                     std::uint32_t number) {
  auto cubin = *CubinFile::Read(CubinOf(sm));
  const std::size_t section = *cubin.Find(".nv.info." + kernel);
  auto attributes = *ReadAttributes(cubin.sections()[section].data);
  const auto found = std::ranges::find(attributes, code, &Attribute::code);
  REQUIRE(found != attributes.end());
  found->SetNumber(at, number);
  REQUIRE(cubin.SetData(section, WriteAttributes(attributes)).ok());
  return cubin.Write();
}

TEST_CASE("SliceCubin_AttributesThatLie_LeaveTheKernelWhole") {
  const std::string kernel = "_Z6SwitchPii";
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto why = [&](AttributeCode code, std::size_t at, std::uint32_t number) {
      const auto sliced = SliceCubin(WithAttribute(sm, kernel, code, at, number));
      REQUIRE(sliced.ok());
      return KernelNamed(*sliced, kernel).why_whole;
    };
    CHECK(why(AttributeCode::kBranchTargets, 8, 3).empty());  // as it is
    CHECK(why(AttributeCode::kBranchTargets, 8, 0x40000001) == "its list of branch targets is broken");
    CHECK(why(AttributeCode::kBranchTargets, 0, 0x10).find("a table that is not known") != std::string::npos);
    CHECK(why(AttributeCode::kBranchTargets, 12, 0x100000).find("leaves the function") != std::string::npos);
    CHECK(why(AttributeCode::kBranchTargets, 12, 8).find("leaves the function") != std::string::npos);
    CHECK(why(AttributeCode::kParamCbank, 4, 0x7FFF0160).find("disagree about the size") != std::string::npos);
    CHECK(why(AttributeCode::kParamCbank, 0, 1).find("in a bank of another kernel") != std::string::npos);
  }
}

TEST_CASE("SliceCubin_LocalSymbols_StandBelowTheBoundOfTheTable") {
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto cubin = *CubinFile::Read(SliceCubin(CubinOf(sm))->bytes);
    const std::uint32_t bound = cubin.sections()[*cubin.Find(".symtab")].header.sh_info;
    for (std::size_t number = bound; number < cubin.symbols().size(); ++number)
      CHECK(ELF64_ST_BIND(cubin.symbols()[number].entry.st_info) != STB_LOCAL);
  }
}

TEST_CASE("SliceCubin_OfItsResult_KeepsTheForms") {
  for (const unsigned sm : kArchitecturesOfTests) {
    const auto once = *SliceCubin(CubinOf(sm));
    const auto twice = *SliceCubin(once.bytes);
    CHECK(twice.bytes == once.bytes);
    REQUIRE(twice.kernels.size() == once.kernels.size());
    for (std::size_t number = 0; number < once.kernels.size(); ++number) {
      CHECK(twice.kernels[number].why_whole.empty() == once.kernels[number].why_whole.empty());
      CHECK(twice.kernels[number].own_params == once.kernels[number].own_params);
    }
    // What is called a form and is none is not believed.
    auto cubin = *CubinFile::Read(once.bytes);
    const std::size_t text = *cubin.Find(".text." + SlicedName("_Z5AxisXPfi"));
    auto code = cubin.sections()[text].data;
    code[0x25] ^= std::byte{1};
    REQUIRE(cubin.SetData(text, code).ok());
    const auto changed = *SliceCubin(cubin.Write());
    CHECK(KernelNamed(changed, "_Z5AxisXPfi").why_whole.starts_with("what is called its sliced form is none"));
  }
}

TEST_CASE("SliceCubin_BrokenFiles_AreErrorsOrStayWhole") {
  const auto bytes = CubinOf(80);
  for (std::size_t end = 0; end < bytes.size(); end += 997)
    CHECK_FALSE(SliceCubin(image::Bytes(bytes).first(end)).ok());
  std::mt19937 random(11);
  for (int round = 0; round < 150; ++round) {
    auto broken = bytes;
    for (int count = 0; count < 8; ++count) broken[random() % broken.size()] = static_cast<std::byte>(random());
    const auto sliced = SliceCubin(broken);
    if (sliced.ok()) CHECK(sliced->bytes.size() >= broken.size());
  }
}

}  // namespace
}  // namespace gridloom::machine
