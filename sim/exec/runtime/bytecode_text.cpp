#include "sim/exec/runtime/bytecode_text.h"

#include <type_traits>
#include <vector>

#include "gl_compiler_interface.h"

namespace gridloom::exec {
namespace {

class Writer {
 public:
  template <typename T>
  void Number(const T& value) {
    for (auto left = static_cast<std::uint64_t>(value);; left >>= 7) {
      const auto low = static_cast<std::uint8_t>(left & 0x7f);
      if (left < 0x80) {
        text_ += static_cast<char>(low);
        return;
      }
      text_ += static_cast<char>(low | 0x80);
    }
  }
  void Bytes(const std::vector<std::uint8_t>& bytes) {
    Number(bytes.size());
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <typename T, typename Each>
  void List(const std::vector<T>& list, Each each) {
    Number(list.size());
    for (const T& one : list) each(const_cast<T&>(one));
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

/// After the first thing that is not right, all that it reads is zero or empty.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  void Number(T& value) {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (text_.empty() || shift > 63) return Fail(value);
      const auto byte = static_cast<std::uint8_t>(text_.front());
      text_.remove_prefix(1);
      if (shift == 63 && byte > 1) return Fail(value);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    value = static_cast<T>(number);
    if (static_cast<std::uint64_t>(value) != number) Fail(value);
  }
  void Bytes(std::vector<std::uint8_t>& bytes) {
    const std::uint64_t size = Count();
    bytes.assign(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(size));
    text_.remove_prefix(size);
  }
  template <typename T, typename Each>
  void List(std::vector<T>& list, Each each) {
    const std::uint64_t size = Count();
    list.clear();
    for (std::uint64_t i = 0; i < size && ok_; ++i) each(list.emplace_back());
  }
  bool AtEnd() const { return ok_ && text_.empty(); }

 private:
  /// A number of things that have at least a byte each.
  std::uint64_t Count() {
    std::uint64_t size = 0;
    Number(size);
    if (size > text_.size()) Fail(size);
    return size;
  }
  template <typename T>
  void Fail(T& value) {
    value = T{};
    ok_ = false;
    text_ = {};
  }
  std::string_view text_;
  bool ok_ = true;
};

template <typename Stream, typename T>
void Numbers(Stream& stream, T& list) {
  stream.List(list, [&](auto& one) { stream.Number(one); });
}

template <typename Stream>
void VisitEdge(Stream& stream, ByteEdge& edge) {
  stream.Number(edge.block);
  stream.Number(edge.first);
  stream.Number(edge.last);
}

template <typename Stream>
void VisitStep(Stream& stream, ByteStep& step) {
  stream.Number(step.code);
  stream.Number(step.type);
  stream.Number(step.from);
  stream.Number(step.extra);
  for (std::uint32_t* const number : {&step.line, &step.dst, &step.a, &step.b, &step.c}) stream.Number(*number);
  stream.Number(step.imm);
}

template <typename Stream>
void VisitBlock(Stream& stream, ByteBlock& block) {
  for (std::uint32_t* const number : {&block.first, &block.last, &block.after_first, &block.after_last,
                                      &block.condition, &block.list, &block.count, &block.line})
    stream.Number(*number);
  stream.Number(block.end);
  stream.Number(block.waits);
  stream.Number(block.imm);
  for (ByteEdge& edge : block.edges) VisitEdge(stream, edge);
}

template <typename Stream>
void VisitFunction(Stream& stream, ByteFunction& function) {
  stream.Number(function.frame_bytes);
  stream.Number(function.has_meetings);
  Numbers(stream, function.parameters);
  Numbers(stream, function.results);
  Numbers(stream, function.parameter_types);
  Numbers(stream, function.result_types);
  stream.List(function.blocks, [&](ByteBlock& block) { VisitBlock(stream, block); });
  stream.List(function.steps, [&](ByteStep& step) { VisitStep(stream, step); });
  Numbers(stream, function.lists);
  stream.Bytes(function.constants);
}

/// The one order of both ways.
template <typename Stream>
void VisitCode(Stream& stream, Bytecode& code) {
  stream.List(code.functions, [&](ByteFunction& function) { VisitFunction(stream, function); });
  stream.List(code.pointers, [&](Bytecode::Pointer& pointer) {
    stream.Number(pointer.value);
    stream.Number(pointer.function);
    stream.Number(pointer.signature);
  });
}

constexpr std::string_view kBuild = kCompilerInterface;  // names the numbers of steps and their form

}  // namespace

std::string WriteBytecode(const Bytecode& code) {
  Writer writer;
  VisitCode(writer, const_cast<Bytecode&>(code));
  return std::string(kBuild) + writer.Take();
}

std::optional<Bytecode> ReadBytecode(std::string_view text) {
  if (!text.starts_with(kBuild)) return std::nullopt;
  Reader reader(text.substr(kBuild.size()));
  Bytecode code;
  VisitCode(reader, code);
  if (!reader.AtEnd()) return std::nullopt;
  return code;
}

}  // namespace gridloom::exec
