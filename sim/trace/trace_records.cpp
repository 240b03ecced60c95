#include "sim/trace/trace_records.h"

#include <algorithm>

#include "rewriter/support/printable.h"

namespace gridloom::trace {
namespace {

constexpr std::uint32_t kFirstWithRanges = 8, kFirstWithReuses = 9, kFirstWithTogether = 11,
                        kFirstWithMeanings = 12;  // versions of files
enum LaunchFlag : std::uint8_t { kTogether = 1 << 0 };
enum ActionFlag : std::uint8_t { kSpecial = 1 << 0, kSees = 1 << 1 };

/// Terms stand behind each other in the order of the instructions, as a builder makes them.
void PutMeanings(const Meanings& meanings, ByteWriter& out) {
  out.Varint(meanings.of.size());
  if (meanings.empty()) return;
  out.Varint(meanings.registers);
  out.Varint(meanings.texts.size());
  for (const std::string& text : meanings.texts) out.Text(text);
  for (const Meaning& meaning : meanings.of) {
    out.Varint(meaning.text);
    out.Fixed(meaning.results);
    out.Fixed(meaning.sources);
    out.Fixed(meaning.flags);
    for (std::uint32_t i = 0; i < std::uint32_t{meaning.results} + meaning.sources; ++i) {
      const Term& term = meanings.terms[meaning.terms + i];
      out.Fixed(term.kind);
      out.Varint(term.value);
    }
  }
  for (const std::vector<std::uint32_t>& next : meanings.successors) {
    out.Varint(next.size());
    for (const std::uint32_t block : next) out.Varint(block);
  }
}

}  // namespace

void PutCode(const KernelCode& code, ByteWriter& out) {
  out.Text(code.name);
  out.Varint(code.register_count);
  out.Varint(code.instructions.size());
  for (const Instruction& instruction : code.instructions) out.Fixed(instruction);
  out.Varint(code.operands.size());
  for (const std::uint16_t reg : code.operands) out.Fixed(reg);
  out.Varint(code.blocks.size());
  for (const BasicBlock& block : code.blocks) out.Fixed(block);
  PutMeanings(code.meanings, out);
}

void PutInfo(const LaunchInfo& info, ByteWriter& out) {
  out.Varint(info.kernel);
  out.Varint(info.shape.ctas);
  out.Varint(info.shape.threads_per_cta);
  out.Varint(info.shape.registers_per_thread);
  out.Varint(info.shape.shared_bytes);
  for (const std::uint32_t size : info.grid) out.Varint(size);
  for (const std::uint32_t size : info.block) out.Varint(size);
  out.Varint(info.stream);
  out.Varint(info.host_ns);
  out.Varint(info.work);
  out.Fixed(info.role);
  out.Fixed(info.ranges);
  out.Text(info.no_ranges);
  out.Fixed(static_cast<std::uint8_t>(info.shape.together ? kTogether : 0));
}

void PutAction(const HostAction& action, ByteWriter& out) {
  out.Fixed(action.kind);
  out.Varint(action.work);
  out.Varint(action.stream);
  out.Varint(action.after.size());
  for (const std::uint64_t work : action.after) out.Varint(work);
  out.Varint(action.group);
  out.Varint(action.rank);
  out.Varint(action.address);
  out.Varint(action.bytes);
  out.Varint(action.host_ns);
  out.Varint(action.span);
  out.Varint(action.source);
  out.Varint(action.source_span);
  out.Fixed(static_cast<std::uint8_t>((action.special ? kSpecial : 0) | (action.sees ? kSees : 0)));
  out.Varint(action.like);
  out.Varint(action.ranks.size());
  std::uint32_t last = 0;
  for (const std::uint32_t rank : action.ranks) {
    out.Signed(std::int64_t{rank} - last);
    last = rank;
  }
  out.Varint(action.host_span);
  out.Varint(action.reuses.size());
  std::uint64_t work = 0;
  for (const HostAction::Reuse& reuse : action.reuses) {
    out.Varint(reuse.work - work);
    out.Signed(reuse.begin);
    work = reuse.work;
  }
}

void PutCtas(std::uint64_t launch, std::span<const std::uint64_t> ctas, ByteWriter& out) {
  out.Varint(launch);
  out.Varint(ctas.size());
  std::uint64_t last = 0;
  for (const std::uint64_t cta : ctas) {
    out.Signed(static_cast<std::int64_t>(cta - last));
    last = cta;
  }
}

namespace {

std::uint32_t GetWord(ByteReader& in) {
  const std::uint64_t value = in.Varint();
  if (value > UINT32_MAX) in.Fail();
  return static_cast<std::uint32_t>(value);
}

/// Only a profiler and a kernel with release code have ranges, and only a kernel of the program's says why there are
/// none.
void GetRole(ByteReader& in, LaunchInfo& info) {
  info.role = in.Fixed<LaunchInfo::Role>();
  info.ranges = in.Fixed<LaunchInfo::Ranges>();
  info.no_ranges = Printable(in.Text());
  if (info.role > LaunchInfo::kLastRole || info.ranges > LaunchInfo::kLastRanges) in.Fail();
  if (info.of_program() != (info.ranges == LaunchInfo::Ranges::kNone)) in.Fail();
  if (!info.of_program() && !info.no_ranges.empty()) in.Fail();
}

/// Ranks of all pages of a copy, or of none.
void GetRanks(ByteReader& in, HostAction& action) {
  action.ranks.resize(in.Count());
  std::int64_t rank = 0;
  for (std::uint32_t& entry : action.ranks) {
    const std::int64_t step = in.Signed();
    if (step > UINT32_MAX || step < -std::int64_t{UINT32_MAX}) return in.Fail();
    rank += step;
    if (rank < 0 || rank > UINT32_MAX) return in.Fail();
    entry = static_cast<std::uint32_t>(rank);
  }
  const std::uint64_t pages = action.bytes / HostAction::kRankedPage + (action.bytes % HostAction::kRankedPage != 0);
  if (!action.ranks.empty() && (action.kind != HostAction::Kind::kCopyToDevice || action.ranks.size() != pages))
    in.Fail();
}

/// Memory ends before the last address does.
void GetMemory(ByteReader& in, HostAction& action) {
  action.span = in.Varint();
  action.source = in.Varint();
  action.source_span = in.Varint();
  const auto flags = in.Fixed<std::uint8_t>();
  action.special = (flags & kSpecial) != 0;
  action.sees = (flags & kSees) != 0;
  if ((flags & ~(kSpecial | kSees)) != 0) in.Fail();
  const auto ends = [&](std::uint64_t address, std::uint64_t span) {
    return std::max(span, action.bytes) <= UINT64_MAX - address;
  };
  if (!ends(action.address, action.span) || !ends(action.source, action.source_span)) in.Fail();
  action.like = in.Varint();
  if (action.like != 0 && (action.kind != HostAction::Kind::kCopyToDevice || action.like >= action.work)) in.Fail();
  GetRanks(in, action);
}

/// Reuses of earlier works, each once.
void GetReuses(ByteReader& in, HostAction& action) {
  action.host_span = in.Varint();
  action.reuses.resize(in.Count());
  constexpr auto kMost = static_cast<std::uint64_t>(HostAction::kMostHostBytes);
  if (action.host_span == 0 && action.reuses.empty()) return;
  if (!action.over_pcie() || std::max(action.host_span, action.bytes) > kMost) in.Fail();
  if (!action.reuses.empty() && action.like != 0) in.Fail();
  std::uint64_t last = 0;
  for (HostAction::Reuse& reuse : action.reuses) {
    const std::uint64_t step = in.Varint();
    reuse.begin = in.Signed();
    if (step == 0 || last >= action.work || step >= action.work - last) return in.Fail();
    if (reuse.begin > HostAction::kMostHostBytes || reuse.begin < -HostAction::kMostHostBytes) return in.Fail();
    reuse.work = last += step;
  }
}

}  // namespace

namespace {

/// Of code whose instructions and blocks are there.
void GetMeanings(ByteReader& in, KernelCode& code) {
  constexpr std::uint64_t kLeastBytes = 4;  // of a meaning
  Meanings& meanings = code.meanings;
  meanings.of.resize(in.Count(kLeastBytes));
  if (meanings.empty()) return;
  meanings.registers = GetWord(in);
  const std::uint64_t texts = in.Count();
  if (texts > Meanings::kMostTexts) return in.Fail();
  meanings.texts.resize(texts);
  for (std::string& text : meanings.texts) text = Printable(in.Text());
  for (Meaning& meaning : meanings.of) {
    meaning.text = GetWord(in);
    meaning.terms = static_cast<std::uint32_t>(meanings.terms.size());
    meaning.results = in.Fixed<std::uint8_t>();
    meaning.sources = in.Fixed<std::uint8_t>();
    meaning.flags = in.Fixed<std::uint8_t>();
    for (std::uint32_t i = 0; i < std::uint32_t{meaning.results} + meaning.sources && !in.failed(); ++i) {
      const auto kind = in.Fixed<Term::Kind>();
      if (kind > Term::kLastKind) in.Fail();
      meanings.terms.push_back({kind, in.Varint()});
    }
  }
  meanings.successors.resize(in.failed() ? 0 : code.blocks.size());
  for (std::vector<std::uint32_t>& next : meanings.successors) {
    next.resize(in.Count());
    for (std::uint32_t& block : next) block = GetWord(in);
  }
}

}  // namespace

Result<KernelCode> GetCode(ByteReader in, std::uint32_t version) {
  KernelCode code;
  code.name = Printable(in.Text());  // it stands in errors, logs and tables from here on
  code.register_count = GetWord(in);
  code.instructions.resize(in.Count(sizeof(Instruction)));
  for (Instruction& instruction : code.instructions) instruction = in.Fixed<Instruction>();
  code.operands.resize(in.Count(sizeof(std::uint16_t)));
  for (std::uint16_t& reg : code.operands) reg = in.Fixed<std::uint16_t>();
  code.blocks.resize(in.Count(sizeof(BasicBlock)));
  for (BasicBlock& block : code.blocks) block = in.Fixed<BasicBlock>();
  if (version >= kFirstWithMeanings) GetMeanings(in, code);
  if (in.failed() || code.register_count > 0xFFFF) return Error{"a code table that is damaged"};
  GL_TRY_STATUS(ValidateCode(code));
  return code;
}

LaunchInfo GetInfo(ByteReader& in, std::uint32_t version) {
  LaunchInfo info;
  info.kernel = GetWord(in);
  info.shape.ctas = in.Varint();
  info.shape.threads_per_cta = GetWord(in);
  info.shape.registers_per_thread = GetWord(in);
  info.shape.shared_bytes = GetWord(in);
  for (std::uint32_t& size : info.grid) size = GetWord(in);
  for (std::uint32_t& size : info.block) size = GetWord(in);
  info.stream = in.Varint();
  info.host_ns = in.Varint();
  info.work = in.Varint();
  if (version >= kFirstWithRanges) GetRole(in, info);
  if (version >= kFirstWithTogether) {
    const auto flags = in.Fixed<std::uint8_t>();
    info.shape.together = (flags & kTogether) != 0;
    if ((flags & ~kTogether) != 0) in.Fail();
  }
  return info;
}

HostAction GetAction(ByteReader& in, std::uint32_t version) {
  HostAction action;
  action.kind = in.Fixed<HostAction::Kind>();
  action.work = in.Varint();
  action.stream = in.Varint();
  action.after.resize(in.Count());
  for (std::uint64_t& work : action.after) work = in.Varint();
  action.group = in.Varint();
  action.rank = in.Varint();
  action.address = in.Varint();
  action.bytes = in.Varint();
  action.host_ns = in.Varint();
  if (action.kind > HostAction::kLastKind) in.Fail();
  if (version >= kFirstWithRanges) GetMemory(in, action);
  if (version >= kFirstWithReuses) GetReuses(in, action);
  return action;
}

}  // namespace gridloom::trace
