#include "scheduler/daemon/http_request.h"

#include <algorithm>
#include <charconv>

namespace gridloom::broker {
namespace {

struct StatusName {
  int number;
  std::string_view name;
};
constexpr StatusName kStatuses[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {413, "Content Too Large"},
    {431, "Request Header Fields Too Large"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

std::string_view NameOf(int status) {
  const auto* const at = std::ranges::find(kStatuses, status, &StatusName::number);
  return at != std::end(kStatuses) ? at->name : "Error";
}

bool SameWord(std::string_view a, std::string_view lower_case) {
  return std::ranges::equal(a, lower_case,
                            [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The text up to `end`, which is taken from `rest`, too; all of it where there is none.
std::string_view Next(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + end.size());
  return part;
}

/// %41 and + of a query; what is no number stays as it is.
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

int ParseTarget(std::string_view target, HttpRequest* request) {
  if (!target.starts_with('/')) return 400;
  request->path = Next(target, "?");
  while (!target.empty()) {
    std::string_view pair = Next(target, "&");
    if (Next(pair, "=") == "token") request->token = Decoded(pair);
  }
  return 0;
}

int ParseField(std::string_view line, HttpRequest* request) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || line[colon - 1] == ' ' || line[0] == ' ' || line[0] == '\t')
    return 400;
  const std::string_view name = line.substr(0, colon), value = Trim(line.substr(colon + 1));
  if (SameWord(name, "authorization")) {
    if (!request->authorization.empty()) return 400;
    request->authorization = value;
  } else if (SameWord(name, "connection")) {
    if (SameWord(value, "close")) request->keep_alive = false;
    if (SameWord(value, "keep-alive")) request->keep_alive = true;
  } else if (SameWord(name, "transfer-encoding") || (SameWord(name, "content-length") && value != "0")) {
    return 413;  // nothing here takes a body, so that none is read
  }
  return 0;
}

}  // namespace

HttpAnswer HttpProblem(int status) {
  const std::string_view text = status == 401 ? "the secret is missing or wrong" : NameOf(status);
  return {.status = status, .body = std::make_shared<const std::string>(std::string(text) + "\n")};
}

int ParseHttpRequest(std::string_view head, HttpRequest* request) {
  *request = {};
  if (head.find('\0') != std::string_view::npos) return 400;
  std::string_view line = Next(head, "\r\n");
  const std::string_view method = Next(line, " "), target = Next(line, " ");
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return line.starts_with("HTTP/") ? 505 : 400;
  request->keep_alive = line == "HTTP/1.1";
  if (method != "GET") return 405;
  if (const int wrong = ParseTarget(target, request); wrong != 0) return wrong;
  while (!head.empty()) {
    if (const int wrong = ParseField(Next(head, "\r\n"), request); wrong != 0) return wrong;
  }
  return 0;
}

std::string HttpHead(const HttpAnswer& answer, bool keep_alive) {
  std::string head =
      "HTTP/1.1 " + std::to_string(answer.status) + " " + std::string(NameOf(answer.status)) + "\r\nContent-Type: ";
  head += answer.type;
  head += "\r\nContent-Length: " + std::to_string(answer.body->size()) +
          "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
  if (answer.status == 401) head += "WWW-Authenticate: Bearer\r\n";
  if (answer.status == 405) head += "Allow: GET\r\n";
  return head + (keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
}

}  // namespace gridloom::broker
