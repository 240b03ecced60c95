// Result<T>: a value or one error message. Expected failures travel by value through every library here;
// only main() and the C entry points turn them into text or status codes (docs/design/errors.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gridloom {

/// What went wrong, as one sentence that names the input, the value found and what was expected.
struct Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// A Result without a value: success, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace gridloom

#define GL_CONCAT_INNER(a, b) a##b
#define GL_CONCAT(a, b) GL_CONCAT_INNER(a, b)

/// Declares `name` with the value of `expr`, or returns its error from the enclosing function.
#define GL_TRY(name, expr)                                                                              \
  auto GL_CONCAT(gl_result_, __LINE__) = (expr);                                                        \
  if (!GL_CONCAT(gl_result_, __LINE__).ok()) return std::move(GL_CONCAT(gl_result_, __LINE__)).error(); \
  auto name = std::move(GL_CONCAT(gl_result_, __LINE__)).value()

/// Returns the error of a Status expression from the enclosing function, if it has one.
#define GL_TRY_STATUS(expr)                                                                 \
  if (auto GL_CONCAT(gl_status_, __LINE__) = (expr); !GL_CONCAT(gl_status_, __LINE__).ok()) \
  return std::move(GL_CONCAT(gl_status_, __LINE__)).error()
