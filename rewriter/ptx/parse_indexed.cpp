// Variables indexed by a register, `tab[%r1+2]` (PTX ISA 6.4.2). What follows the parser knows addresses only, so the
// address is written out before the instruction. The manual leaves open what an index is: on an H100
// (tests/data/gpu/indexed-variables.txt) it becomes 32 bits, with its sign if its type has one; index times element
// size plus the constant's elements wraps at 32 bits and is added without a sign. An element of an array of vectors is
// a vector's component.
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {
namespace {

/// How an index of that type becomes 32 bits: "" when it has them; null when the type cannot be an index.
const char* Widening(ScalarType type) {
  switch (type) {
    case ScalarType::kB8:
    case ScalarType::kU8: return "cvt.u32.u8";
    case ScalarType::kS8: return "cvt.s32.s8";
    case ScalarType::kB16:
    case ScalarType::kU16: return "cvt.u32.u16";
    case ScalarType::kS16: return "cvt.s32.s16";
    case ScalarType::kB32:
    case ScalarType::kU32:
    case ScalarType::kS32: return "";
    case ScalarType::kB64:
    case ScalarType::kU64:
    case ScalarType::kS64: return "cvt.u32.u64";
    default: return nullptr;
  }
}

}  // namespace

// register-subscript := register ( '+' constant )?        between '[' and ']'; `out` is the array's name, and becomes
//                                                         that of the address
bool Parser::ParseRegisterSubscript(Operand& out, const Variable& array) {
  IndexedVariable indexed{
      .array = out.text, .index = token_.text, .element_bytes = BytesOf(array.type), .space = array.space};
  if (array.dims.empty())
    return FailAt(out.loc, "'" + std::string(out.text) + "' is not an array, a register cannot index it");
  const Symbol symbol = symbols_.Find(indexed.index);
  if (symbol.variable == nullptr || symbol.variable->space != StateSpace::kReg)
    return Fail("a constant or a register as array index");
  const char* const widening = Widening(symbol.variable->type);
  if (widening == nullptr || symbol.variable->vector != 1) {
    return FailAt(token_.loc, "'" + std::string(indexed.index) +
                                  "' cannot be an array index: an integer register of at most 64 bits can");
  }
  indexed.widening = widening;
  Advance();
  if (AtOffset() && !ParseOffset(indexed.constant)) return false;
  do {
    indexed.address = module_.strings.Intern("%gl_at" + std::to_string(indexed_count_++));
  } while (symbols_.Find(indexed.address).found());
  out.text = indexed.address;
  indexed_.push_back(indexed);
  return true;
}

/// Writes out the addresses of the instruction that was read, whose result has `bytes` where it is an address itself.
void Parser::WriteIndexedAddresses(Block& block, unsigned bytes, SourceLoc loc) {
  for (const IndexedVariable& indexed : std::exchange(indexed_, {})) {
    const bool wide = module_.address_size == 64;
    const std::string word = wide ? "64" : "32", name(indexed.address);
    const std::string address = name + (bytes < module_.address_size / 8 ? "_wide" : ""), base = name + "_base",
                      index = name + "_index";
    std::string text = ".reg .b" + word + " " + address + ", " + base + "; .reg .b32 " + index + ";";
    if (address != name) text += ".reg .b32 " + name + ";";
    if (!indexed.widening.empty())
      text += std::string(indexed.widening) + " " + index + ", " + std::string(indexed.index) + ";";
    const auto constant =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(indexed.constant) * indexed.element_bytes);
    text += "mad.lo.u32 " + index + ", " + (indexed.widening.empty() ? std::string(indexed.index) : index) + ", " +
            std::to_string(indexed.element_bytes) + ", " + std::to_string(constant) + ";";
    text += "mov.u" + word + " " + base + ", " + std::string(indexed.array) + ";";
    // Shared and local memory have addresses of 32 bits, where the sum wraps, too.
    const bool short_addresses = indexed.space == StateSpace::kShared || indexed.space == StateSpace::kLocal;
    if (!wide) {
      text += "add.u32 " + address + ", " + base + ", " + index + ";";
    } else if (short_addresses) {
      const std::string low = name + "_low";
      text += ".reg .b32 " + low + "; cvt.u32.u64 " + low + ", " + base + "; add.u32 " + index + ", " + index + ", " +
              low + ";";
      text += "cvt.u64.u32 " + address + ", " + index + ";";
    } else {
      text += "cvt.u64.u32 " + address + ", " + index + "; add.u64 " + address + ", " + address + ", " + base + ";";
    }
    if (address != name) text += "cvt.u32.u64 " + name + ", " + address + ";";
    ParseText(block, module_.strings.Intern(text), loc);
  }
}

/// Statements from elsewhere than the module's text; `loc`: where they are needed.
void Parser::ParseText(Block& block, std::string_view text, SourceLoc loc) {
  const auto lexer = std::exchange(lexer_, Lexer(text));
  const auto token = token_, ahead = ahead_;
  const bool had_ahead = std::exchange(has_ahead_, false);
  for (token_ = lexer_.Next(); !At(TokenKind::kEnd);) {
    const std::size_t before = block.statements.size();
    ParseStatement(block);
    for (std::size_t i = before; i < block.statements.size(); ++i) {
      if (auto* instruction = std::get_if<Instruction>(&block.statements[i])) instruction->loc = loc;
    }
  }
  lexer_ = lexer, token_ = token, ahead_ = ahead, has_ahead_ = had_ahead;
}

}  // namespace gridloom::ptx
