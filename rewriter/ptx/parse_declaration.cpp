// Variables (PTX ISA, 5.4): state space, alignment, attributes, type, names, register ranges, dimensions. Initialisers
// are in parse_initializer.cpp.
#include <algorithm>
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {
namespace {

struct SpaceWord {
  std::string_view word;
  StateSpace space;
  std::string_view sub_space;
};
constexpr SpaceWord kSpaceWords[] = {
    {".reg", StateSpace::kReg, ""},
    {".sreg", StateSpace::kSReg, ""},
    {".const", StateSpace::kConst, ""},
    {".global", StateSpace::kGlobal, ""},
    {".local", StateSpace::kLocal, ""},
    {".param", StateSpace::kParam, ""},
    {".param::entry", StateSpace::kParam, "::entry"},
    {".param::func", StateSpace::kParam, "::func"},
    {".shared", StateSpace::kShared, ""},
    {".shared::cta", StateSpace::kShared, "::cta"},
    {".shared::cluster", StateSpace::kShared, "::cluster"},
    {".tex", StateSpace::kTex, ""},
};

const SpaceWord* FindSpaceWord(std::string_view word) {
  const auto it = std::ranges::find(kSpaceWords, word, &SpaceWord::word);
  return it == std::end(kSpaceWords) ? nullptr : it;
}

}  // namespace

bool Parser::StartsDeclaration(std::string_view word) { return FindSpaceWord(word) != nullptr; }

// linkage := '.visible' | '.extern' | '.weak' | '.common'
bool Parser::ParseLinkage(Linkage& linkage) {
  if (AtWord(".visible")) {
    linkage = Linkage::kVisible;
  } else if (AtWord(".extern")) {
    linkage = Linkage::kExtern;
  } else if (AtWord(".weak")) {
    linkage = Linkage::kWeak;
  } else if (AtWord(".common")) {
    linkage = Linkage::kCommon;
  } else {
    return false;
  }
  Advance();
  return true;
}

// module-variable := declaration-head declarator ( ',' declarator )* ';'
bool Parser::ParseModuleVariable(Linkage linkage) {
  Variable head;
  head.linkage = linkage;
  if (!ParseDeclarationHead(head, /*is_param=*/false)) return false;
  do {
    Variable variable = head;
    if (!ParseDeclarator(variable)) return false;
    const bool kept = ExpandRange(std::move(variable), [this](Variable one) {
      Variable& added = module_.variables.emplace_back(std::move(one));
      module_.items.emplace_back(&added);
      Declare(added);
    });
    if (!kept) return false;
  } while (Match(TokenKind::kComma));
  return Expect(TokenKind::kSemicolon, "after the declaration");
}

// declaration-head := state-space declaration-word*       a type must be among the words
bool Parser::ParseDeclarationHead(Variable& head, bool is_param) {
  head.loc = token_.loc;
  if (!ParseStateSpace(head)) return false;
  while (At(TokenKind::kDotWord)) {
    if (!ParseDeclarationWord(head, is_param)) return false;
  }
  // Texture variables of PTX 1.x, `.tex .u32 t`, have a type too; so has everything else.
  if (head.type == ScalarType::kNone) return Fail("a type such as .b32");
  return true;
}

// state-space := '.reg' | '.global' | '.param' '::entry'? | '.const' ( '[' int ']' )? | …
bool Parser::ParseStateSpace(Variable& head) {
  // CUDA Tile's compiler has them for tensor maps from sm_90 on. What a driver is to put there is not in the PTX.
  if (AtWord(".hidden"))
    return FailAt(token_.loc, "hidden parameters are not supported: a driver fills them, how is not public");
  const SpaceWord* entry = At(TokenKind::kDotWord) ? FindSpaceWord(token_.text) : nullptr;
  if (entry == nullptr) return Fail("a state space such as .global, .param or .reg");
  head.space = entry->space;
  if (!entry->sub_space.empty()) head.sub_spaces.push_back(entry->sub_space);
  Advance();
  if (head.space != StateSpace::kConst || !Match(TokenKind::kLBracket)) return true;
  std::uint64_t bank = 0;
  if (!ParseInteger(bank, "a constant bank") || !Expect(TokenKind::kRBracket, "after the constant bank")) return false;
  head.sub_spaces.push_back(module_.strings.Intern('[' + std::to_string(bank) + ']'));
  return true;
}

// declaration-word := align | attributes | '.v2' | '.v4' | '.v8' | pointer | type
bool Parser::ParseDeclarationWord(Variable& head, bool is_param) {
  if (AtWord(".align")) return ParseAlign(head.align);
  if (AtWord(".attribute")) return ParseAttributes(head.attributes);
  if (is_param && AtWord(".ptr")) return ParsePointer(head);
  const std::string_view word = token_.text.substr(1);
  if (word == "v2" || word == "v4" || word == "v8") {
    head.vector = static_cast<std::uint32_t>(word[1] - '0');
  } else if (const auto type = TypeFromText(word); type && head.type == ScalarType::kNone) {
    head.type = *type;
  } else {
    return Fail("a type, .align, a vector width, an attribute or a name");
  }
  Advance();
  return true;
}

// align := '.align' constant       a power of two
bool Parser::ParseAlign(std::uint32_t& align) {
  Advance();
  const SourceLoc loc = token_.loc;
  if (!ParseInteger32(align, "an alignment after .align")) return false;
  constexpr std::uint32_t kMostAlign = 1u << 20;
  if (align != 0 && (align & (align - 1)) == 0 && align <= kMostAlign) return true;
  return FailAt(loc, "expected a power of two after .align, found " + std::to_string(align));
}

// pointer := '.ptr' ( '.const' | '.global' | '.local' | '.shared' )? align?
bool Parser::ParsePointer(Variable& head) {
  Advance();
  head.is_pointer = true;
  constexpr StateSpace kSpaces[] = {StateSpace::kConst, StateSpace::kGlobal, StateSpace::kLocal, StateSpace::kShared,
                                    StateSpace::kParam};
  if (At(TokenKind::kDotWord)) {
    for (const StateSpace space : kSpaces) {
      if (token_.text.substr(1) != TextOf(space)) continue;
      head.pointer_space = space;
      Advance();
      break;
    }
  }
  return !AtWord(".align") || ParseAlign(head.pointer_align);
}

// attributes := '.attribute' '(' attribute ( ',' attribute )* ')'
// attribute := dot-word ( '(' tokens ')' )?       kept without its dot: "managed", "unified(1,2)"
bool Parser::ParseAttributes(std::vector<std::string_view>& attributes) {
  Advance();
  if (!Expect(TokenKind::kLParen, "after .attribute")) return false;
  do {
    if (!At(TokenKind::kDotWord)) return Fail("an attribute such as .managed");
    std::string text(token_.text.substr(1));
    Advance();
    if (At(TokenKind::kLParen)) {
      while (!At(TokenKind::kRParen)) {
        if (At(TokenKind::kEnd) || At(TokenKind::kSemicolon) || At(TokenKind::kError))
          return Fail("')' after the attribute");
        text.append(token_.begin, token_.end);
        Advance();
      }
      text += ')';
      Advance();
    }
    attributes.push_back(module_.strings.Intern(text));
  } while (Match(TokenKind::kComma));
  return Expect(TokenKind::kRParen, "after the attributes");
}

// declarator := ident range? dimensions? ( '=' initializer )?
bool Parser::ParseDeclarator(Variable& variable) {
  variable.loc = token_.loc;
  if (!ExpectName(variable.name, "a name")) return false;
  if (At(TokenKind::kLess) && !ParseRange(variable)) return false;
  if (!ParseDimensions(variable)) return false;
  if (At(TokenKind::kAssign) && !ParseInitializer(variable)) return false;
  return CheckSize(variable);
}

// range := '<' ( int | 'WARP_SZ' ) '>'
bool Parser::ParseRange(Variable& variable) {
  Advance();
  const SourceLoc loc = token_.loc;
  // No expression: its '>' would compare.
  const auto count = At(TokenKind::kInt)  ? IntegerFromText(token_.text)
                     : AtIdent("WARP_SZ") ? std::optional(Constant::Signed(32))
                                          : std::nullopt;
  if (!count) return Fail("the number of registers");
  Advance();
  if (count->bits > kMaxRegisterRange) {
    return FailAt(loc, "expected at most " + std::to_string(kMaxRegisterRange) + " registers, found " +
                           std::to_string(count->bits));
  }
  variable.range_count = static_cast<std::uint32_t>(count->bits);
  if (count->bits == 0) variable.name = {};  // declares nothing: ExpandRange drops it
  return Expect(TokenKind::kGreater, "after the number of registers");
}

// `.global .u32 x<4>` is short for x0, x1, x2, x3. Registers stay a range, there may be many.
bool Parser::ExpandRange(Variable variable, const std::function<void(Variable)>& keep) {
  if (variable.name.empty()) return true;
  if (variable.range_count == 0 || variable.space == StateSpace::kReg) {
    keep(std::move(variable));
    return true;
  }
  const std::uint32_t count = std::exchange(variable.range_count, 0);
  if (!CountExpanded(count, variable.loc)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    Variable one = variable;
    one.name = module_.strings.Intern(std::string(variable.name) + std::to_string(i));
    keep(std::move(one));
  }
  return true;
}

// Few characters can ask for many names: there is a limit to what a module gets.
bool Parser::CountExpanded(std::uint64_t count, SourceLoc loc) {
  constexpr std::uint64_t kMostExpanded = 1u << 16;
  expanded_ += count;
  return expanded_ <= kMostExpanded || FailAt(loc, "more than 65536 names declared by ranges");
}

// dimensions := '[' ']' ? ( '[' constant ']' )*
bool Parser::ParseDimensions(Variable& variable) {
  constexpr std::size_t kMostDimensions = 64;
  while (At(TokenKind::kLBracket)) {
    const SourceLoc loc = token_.loc;
    Advance();
    std::uint64_t size = 0;
    if (!At(TokenKind::kRBracket)) {
      if (!ParseInteger(size, "an array size")) return false;
    }
    if (size == 0 && !variable.dims.empty())
      return FailAt(loc, "only the first dimension of an array may be left open");
    if (variable.dims.size() == kMostDimensions) return FailAt(loc, "array with more than 64 dimensions");
    variable.dims.push_back(size);
    if (!Expect(TokenKind::kRBracket, "after the array size")) return false;
  }
  return true;
}

// Sizes that do not fit are refused here, so that nobody who multiplies them later overflows.
bool Parser::CheckSize(const Variable& variable) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;
  std::uint64_t bytes = std::max<std::uint64_t>(1, variable.element_bytes());
  for (const std::uint64_t size : variable.dims) {
    if (size > kMostBytes / bytes)
      return FailAt(variable.loc, "array '" + std::string(variable.name) + "' is too large");
    bytes *= std::max<std::uint64_t>(1, size);
  }
  return true;
}

void Parser::Declare(Variable& variable) {
  if (variable.range_count != 0) {
    symbols_.DeclareRange(variable.name, &variable);
  } else if (variable.name != "_") {
    symbols_.Declare(variable.name, {.variable = &variable});
  }
  for (Initializer& element : variable.initializer) {
    if (auto* operand = std::get_if<Operand>(&element.value); operand != nullptr && element.field.empty()) {
      ResolveName(*operand, /*label_expected=*/false);
    }
  }
}

}  // namespace gridloom::ptx
