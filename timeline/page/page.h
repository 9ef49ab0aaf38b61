// Self-contained HTML pages with plots: one file with its data as JSON.
#ifndef HVD_TIMELINE_PAGE_PAGE_H_
#define HVD_TIMELINE_PAGE_PAGE_H_

#include <string>
#include <string_view>

namespace hvd {

// `page`, embedded by hvd_embed_page, with `json` in place of its first "@REPORT@". Escapes the
// JSON so that it cannot end its script element.
std::string FillPage(std::string_view page, std::string_view json);

}  // namespace hvd

#endif  // HVD_TIMELINE_PAGE_PAGE_H_
