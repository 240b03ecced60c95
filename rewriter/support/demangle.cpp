// LLVM's parser of Itanium names (headers alone, no library) makes nodes that share what the name refers to more than
// once. As each node is made, what it will cost to print is added up from its parts, so that it is known before
// anything is printed.
#include "rewriter/support/demangle.h"

#include <llvm/Demangle/ItaniumDemangle.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "rewriter/support/printable.h"

namespace llvm::itanium_demangle {

// The only function of the parser that LLVM's header declares and does not define. Weak: where LLVM itself is linked,
// its own is taken.
//   discriminator := '_' digit | '__' digit digit+ '_' | digit+ at the end of the name
__attribute__((weak)) const char* parse_discriminator(const char* first, const char* last) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const char* at = first;
  while (at != last && at - first < 2 && *at == '_') ++at;
  const auto underscores = at - first;
  const char* const end = std::find_if_not(at, last, is_digit);
  if (underscores == 0) return end == last ? last : first;
  if (underscores == 1) return end != at ? at + 1 : first;
  return end - at > 1 && end != last && *end == '_' ? end + 1 : first;
}

}  // namespace llvm::itanium_demangle

namespace gridloom {
namespace {

namespace itanium = llvm::itanium_demangle;
using itanium::Node;

constexpr std::size_t kLongestName = 8 * 1024;  ///< nvcc's longest are of some 5,000 bytes
/// Bytes of text for a byte of the name, and bytes that any name may have: 60 bytes of nested maps rightly are 1,200.
constexpr std::uint64_t kTextPerByte = 16, kTextOfAny = 16 * 1024;
/// The parser and the printer call themselves for what lies in others: at most so deep, which takes less than 1 MB of
/// stack.
constexpr std::uint64_t kDeepestParse = 256, kDeepestPrint = 1024;

/// An estimate of the bytes that printing a node writes, or of its calls where that is more.
struct alignas(16) Cost {
  static constexpr std::uint64_t kNode = 16;  ///< keywords, brackets and commas of one node
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

  std::uint64_t fixed = 0;  ///< without the packs
  std::uint64_t packs = 0;  ///< of all elements of the packs of parameters in it: an expansion prints each once
  std::uint64_t pack = 0;   ///< elements of the largest of these packs: an expansion prints all else that often
  std::uint64_t depth = 0;  ///< of nodes

  void Add(const Cost& part) {
    fixed = std::min(fixed + part.fixed, kMost);
    packs = std::min(packs + part.packs, kMost);
    pack = std::max(pack, part.pack);
    depth = std::max(depth, part.depth);
  }
  std::uint64_t text() const { return fixed + packs; }
};

/// nodes' parts: others and arrays of them, text, and numbers that print nothing.
template <typename Part>
Cost CostOf(const Part& part) {
  Cost cost;
  if constexpr (std::is_same_v<Part, itanium::NodeArray>) {
    for (const Node* node : part) cost.Add(CostOf(node));
  } else if constexpr (std::is_convertible_v<Part, const Node*>) {
    const Node* const node = part;
    if (node != nullptr)
      cost = *std::launder(reinterpret_cast<const Cost*>(reinterpret_cast<const std::byte*>(node) - sizeof(Cost)));
  } else if constexpr (std::is_convertible_v<Part, std::string_view>) {
    cost.fixed = std::string_view(part).size();
  }
  return cost;
}

/// The cost of a node of type T from that of its parts.
template <typename T>
Cost WithNode(Cost cost) {
  ++cost.depth;
  if constexpr (std::is_same_v<T, itanium::ForwardTemplateReference>) {
    // The reference leads to what is not known yet, maybe to what it lies in itself. No name that has one is printed.
    cost.depth = Cost::kMost;
  } else if constexpr (std::is_same_v<T, itanium::ParameterPack>) {
    cost.packs = cost.text();
    cost.fixed = 0;
  } else if constexpr (std::is_same_v<T, itanium::ParameterPackExpansion> ||
                       std::is_same_v<T, itanium::SizeofParamPackExpr> || std::is_same_v<T, itanium::FoldExpr>) {
    cost.fixed = std::min(cost.fixed * std::max<std::uint64_t>(cost.pack, 1) + cost.packs, Cost::kMost);
    cost.packs = cost.pack = 0;
  }
  cost.fixed += Cost::kNode;
  return cost;
}

std::string Ordinal(std::string_view count) {
  std::uint64_t number = 0;
  if (count.empty()) return "1";
  std::from_chars(count.data(), count.data() + count.size(), number);
  return std::to_string(number + 2);
}

/// Types without a name, spelled as GNU's tools do: "{lambda(int)#1}" where LLVM's say "'lambda'(int)".
struct Lambda final : itanium::ClosureTypeName {
  Lambda(itanium::NodeArray template_params, const Node* before, itanium::NodeArray params, const Node* behind,
         std::string_view its_count)
      : ClosureTypeName(template_params, before, params, behind, its_count), count(its_count) {}
  void printLeft(itanium::OutputBuffer& out) const override {
    out += "{lambda";
    printDeclarator(out);
    out << "#" << Ordinal(count) << "}";
  }
  std::string_view count;
};

struct Unnamed final : itanium::UnnamedTypeName {
  explicit Unnamed(std::string_view its_count) : UnnamedTypeName(its_count), count(its_count) {}
  void printLeft(itanium::OutputBuffer& out) const override { out << "{unnamed type#" << Ordinal(count) << "}"; }
  std::string_view count;
};

template <typename T>
struct Spelled {
  using Type = T;
};
template <>
struct Spelled<itanium::ClosureTypeName> {
  using Type = Lambda;
};
template <>
struct Spelled<itanium::UnnamedTypeName> {
  using Type = Unnamed;
};

/// The parser's source of memory: each node stands behind its cost.
class Nodes {
 public:
  template <typename T, typename... Parts>
  T* makeNode(Parts&&... parts) {  // NOLINT: LLVM's name, as the next
    Cost cost;
    (cost.Add(CostOf<std::remove_cvref_t<Parts>>(parts)), ...);
    if constexpr (std::is_same_v<T, itanium::ParameterPack>)
      ((cost.pack = std::max<std::uint64_t>(cost.pack, parts.size())), ...);
    using Made = typename Spelled<T>::Type;
    static_assert(alignof(Made) <= alignof(Cost));
    void* const place = memory_.allocate(sizeof(Cost) + sizeof(Made), alignof(Cost));
    Cost* const before = new (place) Cost(WithNode<T>(cost));
    return new (static_cast<void*>(before + 1)) Made(std::forward<Parts>(parts)...);
  }
  void* allocateNodeArray(std::size_t count) { return memory_.allocate(count * sizeof(Node*), alignof(Node*)); }

 private:
  std::array<std::byte, 4096> first_;
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
};

/// Counts how deep it is. Each way of the parser back to where it was leads through one of these, but for a vendor's
/// own types and for declarations of template parameters: they take 240 bytes of stack for two of the name, whose
/// length is limited.
class Parser : public itanium::AbstractManglingParser<Parser, Nodes> {
  using Base = itanium::AbstractManglingParser<Parser, Nodes>;

 public:
  explicit Parser(std::string_view name) : Base(name.data(), name.data() + name.size()) {}

  Node* parseType() {  // NOLINT: LLVM's names, as the next
    const char* const begin = First;
    const std::size_t component = Subs.size();
    Node* const node = Deeper(&Base::parseType);
    if (node != nullptr && !binding_) NoteParameter(begin, component);
    return node;
  }
  Node* parseSubstitution() {
    const char* const begin = First;
    Node* const node = Base::parseSubstitution();
    return node != nullptr ? BoundHere({begin, First}, node) : nullptr;
  }
  Node* parseQualifiedType() { return Deeper(&Base::parseQualifiedType); }
  Node* parseExpr() { return Deeper(&Base::parseExpr); }
  Node* parseBracedExpr() { return Deeper(&Base::parseBracedExpr); }
  Node* parseTemplateArg() { return Deeper(&Base::parseTemplateArg); }
  Node* parseTemplateParamDecl(TemplateParamList* params) { return Deeper(&Base::parseTemplateParamDecl, params); }
  Node* parseName(NameState* state = nullptr) { return Deeper(&Base::parseName, state); }
  Node* parseEncoding(bool params = true) { return Deeper(&Base::parseEncoding, params); }

 private:
  template <typename... Arguments>
  Node* Deeper(Node* (Base::*parse)(Arguments...), Arguments... arguments) {
    if (depth_ == kDeepestParse) return nullptr;
    ++depth_;
    Node* const node = (this->*parse)(arguments...);
    --depth_;
    return node;
  }

  /// Remembers the components that are parameters of templates, or pointers and references to one.
  void NoteParameter(const char* begin, std::size_t component) {
    constexpr std::ptrdiff_t kMostPrefixes = 4;
    const char* at = begin;
    while (at != First && at - begin < kMostPrefixes && std::string_view("PROK").find(*at) != std::string_view::npos)
      ++at;
    if (at == First || *at != 'T') return;
    const char* const end = std::find(at, First, '_');
    if (!std::all_of(at + 1, end, [](char c) { return c >= '0' && c <= '9'; }) || end == First) return;
    if (at != begin && end + 1 != First) return;
    const std::size_t its = at == begin ? component : Subs.size() - 1;
    if (its < Subs.size()) parameters_[its] = {begin, end + 1};
  }

  /// The base class takes a reference to a parameter of a template for what it was where it came first. It is what it
  /// is where the reference stands: in the parameters of a kernel not that of the function that its lambda was written
  /// in.
  Node* BoundHere(std::string_view reference, Node* node) {
    std::size_t component = 0;  // S_ is 0, S0_ is 1
    for (const char c : reference.substr(1, reference.size() - 2))
      component = component * 36 + static_cast<std::size_t>(c <= '9' ? c - '0' : c - 'A' + 10);
    if (reference.size() > 2) ++component;
    const auto found = reference.ends_with('_') ? parameters_.find(component) : parameters_.end();
    if (found == parameters_.end()) return node;
    const std::size_t components = Subs.size();
    const itanium::ScopedOverride<bool> binding(binding_, true);
    const itanium::ScopedOverride<const char*> first(First, found->second.data());
    const itanium::ScopedOverride<const char*> last(Last, found->second.data() + found->second.size());
    Node* const bound = Base::parseType();
    Subs.shrinkToSize(std::min(components, Subs.size()));
    return bound != nullptr ? bound : node;
  }

  std::uint64_t depth_ = 0;
  bool binding_ = false;                                          ///< what was read before is read again
  std::unordered_map<std::size_t, std::string_view> parameters_;  ///< of components, with their text
};

std::string Text(const Node& node) {
  itanium::OutputBuffer out;
  out += ' ';  // the dimensions of an array look at what stands before them, even if nothing does
  node.print(out);
  const std::unique_ptr<char, decltype(&std::free)> owner(out.getBuffer(), &std::free);
  return std::string(std::string_view(out).substr(1));
}

/// What a name that begins with "_Z" stands for. Empty: nothing, or too much.
std::string Demangled(std::string_view name) {
  if (name.size() > kLongestName) return {};
  Parser parser(name);
  const Node* const node = parser.parse();
  if (node == nullptr) return {};
  const std::uint64_t most = kTextOfAny + kTextPerByte * name.size();
  const Cost cost = CostOf(node);
  return cost.text() <= most && cost.depth <= kDeepestPrint ? Text(*node) : std::string();
}

}  // namespace

std::string DemangledName(std::string_view name) {
  constexpr std::string_view kLocal = "__nv_static_";  // __nv_static_52__f4510a67_..._2317245__Z4fillPi
  const std::size_t inner = name.starts_with(kLocal) ? name.find("__Z") : std::string_view::npos;
  const std::string_view mangled = inner != std::string_view::npos ? name.substr(inner + 1) : name;
  if (!mangled.starts_with("_Z")) return Printable(name);  // "Mix" is no type either
  std::string text = Demangled(mangled);
  if (text.empty()) {
    // A kernel that a pass has made of another one: _Z1kPi__profile.
    const std::size_t end = mangled.rfind("__");
    if (end == std::string_view::npos || end + 2 == mangled.size()) return Printable(name);
    text = Demangled(mangled.substr(0, end));
    if (text.empty()) return Printable(name);
    text += " (" + std::string(mangled.substr(end + 2)) + ")";
  }
  return (inner != std::string_view::npos ? "static " : "") + Printable(text);
}

}  // namespace gridloom
