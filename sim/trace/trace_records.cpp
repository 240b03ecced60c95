#include "sim/trace/trace_records.h"

namespace gridloom::trace {

void PutCode(const KernelCode& code, ByteWriter& out) {
  out.Text(code.name);
  out.Varint(code.register_count);
  out.Varint(code.instructions.size());
  for (const Instruction& instruction : code.instructions) out.Fixed(instruction);
  out.Varint(code.operands.size());
  for (const std::uint16_t reg : code.operands) out.Fixed(reg);
  out.Varint(code.blocks.size());
  for (const BasicBlock& block : code.blocks) out.Fixed(block);
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

}  // namespace

Result<KernelCode> GetCode(ByteReader in) {
  KernelCode code;
  code.name = std::string(in.Text());
  code.register_count = GetWord(in);
  code.instructions.resize(in.Count(sizeof(Instruction)));
  for (Instruction& instruction : code.instructions) instruction = in.Fixed<Instruction>();
  code.operands.resize(in.Count(sizeof(std::uint16_t)));
  for (std::uint16_t& reg : code.operands) reg = in.Fixed<std::uint16_t>();
  code.blocks.resize(in.Count(sizeof(BasicBlock)));
  for (BasicBlock& block : code.blocks) block = in.Fixed<BasicBlock>();
  if (in.failed() || code.register_count > 0xFFFF) return Error{"a code table that is damaged"};
  GL_TRY_STATUS(ValidateCode(code));
  return code;
}

LaunchInfo GetInfo(ByteReader& in) {
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
  return info;
}

HostAction GetAction(ByteReader& in) {
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
  return action;
}

}  // namespace gridloom::trace
