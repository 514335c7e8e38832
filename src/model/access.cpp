#include "model/access.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_ENUM(AccessRole, viewer, developer, op, admin)
BOOST_DESCRIBE_STRUCT(Token, (), (id, name, principal, role, workspaces, hash, created, expires, revision))
BOOST_DESCRIBE_STRUCT(BrowserSession, (), (id, hash, token, job, read_only, link, created, expires, revision))
}  // namespace helio::model

HELIO_JSON_DEFINE_ENUM(helio::model::AccessRole)
HELIO_JSON_DEFINE(helio::model::Token)
HELIO_JSON_DEFINE(helio::model::BrowserSession)
