#include "scheduler/daemon/accounts.h"

#include "scheduler/daemon/state_file.h"

namespace gridloom::broker {
namespace {

using Json = nlohmann::ordered_json;

/// The names in the file.
template <typename Account, typename Visit>
void ForEachField(Account& account, const Visit& visit) {
  visit("launches", account.launches);
  visit("faults", account.faults);
  visit("slices", account.slices);
  visit("ctas", account.ctas);
  visit("copied_bytes", account.copied_bytes);
  visit("peak_memory_bytes", account.peak_memory_bytes);
  visit("device_seconds", account.device_seconds);
  visit("simulated_seconds", account.simulated_seconds);
}

}  // namespace

Result<Accounts> ParseAccounts(std::string_view text, const std::string& path) {
  GL_TRY(tenants, ParseTenants(text, path, "file of accounts"));
  Accounts accounts;
  for (const auto& [name, fields] : tenants.items()) {
    bool good = fields.is_object();
    ForEachField(accounts[name], [&, &fields = fields](const char* key, auto& value) {
      if (good && fields.contains(key)) good = TakeNumber(fields[key], &value);
    });
    if (!good) return Error{path + ": the account of " + name + " is damaged"};
  }
  return accounts;
}

std::string AccountsText(const Accounts& accounts) {
  Json tenants = Json::object();
  for (const auto& [name, account] : accounts) {
    Json& fields = tenants[name] = Json::object();
    ForEachField(account, [&](const char* key, const auto& value) { fields[key] = value; });
  }
  return TenantsText(std::move(tenants));
}

Result<Accounts> ReadAccounts(const std::string& path) {
  GL_TRY(text, ReadStateFile(path));
  return text ? ParseAccounts(*text, path) : Accounts{};
}

Status WriteAccounts(const std::string& path, const Accounts& accounts) { return ReplaceFile(path, AccountsText(accounts)); }

}  // namespace gridloom::broker
