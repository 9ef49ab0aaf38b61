// Names and numbers of a request as messages show them.
#ifndef HVD_RUNTIME_CORE_REQUEST_TEXT_H_
#define HVD_RUNTIME_CORE_REQUEST_TEXT_H_

#include <string>
#include <string_view>

namespace hvd {

// 'name', cut when it is long.
std::string Quoted(std::string_view name);

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_TEXT_H_
