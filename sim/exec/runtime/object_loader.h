// Loads an x86-64 ELF relocatable object into executable memory, without LLVM. The bytes may come from a file on disk:
// everything in them is checked before it is used. Memory is writable while the object is put together and executable
// afterwards, never both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"

namespace gridloom::exec {

class CodeObject {
 public:
  /// `name` is for messages.
  static Result<std::unique_ptr<CodeObject>> Load(std::span<const std::uint8_t> object, std::string_view name);
  ~CodeObject();
  CodeObject(const CodeObject&) = delete;
  CodeObject& operator=(const CodeObject&) = delete;

  /// Address of a global symbol the object defines, null when there is none.
  const void* Find(std::string_view symbol) const;
  /// Machine code, including the stubs to external functions.
  std::uintptr_t code_begin() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  std::uintptr_t code_end() const { return code_begin() + code_bytes_; }
  /// Section .text, where the kernel and its functions are.
  std::uintptr_t text_begin() const { return code_begin() + text_at_; }
  std::size_t text_bytes() const { return text_bytes_; }

 private:
  friend class ObjectLoader;
  CodeObject() = default;

  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0, code_bytes_ = 0, text_at_ = 0, text_bytes_ = 0;
  std::map<std::string, const void*, std::less<>> symbols_;
};

}  // namespace gridloom::exec
