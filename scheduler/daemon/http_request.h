// One request of HTTP/1.x, as far as the page of the broker needs it: GET, without a body.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gridloom::broker {

struct HttpRequest {
  std::string path;
  std::optional<std::string> token;  ///< ?token=…, decoded
  std::string authorization;         ///< the header
  bool keep_alive = false;           ///< the client would like to ask more over the same connection
};

/// What comes back. `body` may be shared: many may read the same answer.
struct HttpAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
};

/// An answer of one line that says what is wrong.
HttpAnswer HttpProblem(int status);

/// Reads the lines before a request's body, without the empty line that ends them. Answers 0, or the status that says
/// what is wrong.
int ParseHttpRequest(std::string_view head, HttpRequest* request);

/// The lines before an answer's body.
std::string HttpHead(const HttpAnswer& answer, bool keep_alive);

}  // namespace gridloom::broker
