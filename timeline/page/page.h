// Pages with plots that need nothing but a browser: one file of HTML, its numbers as JSON inside.
#ifndef HVD_TIMELINE_PAGE_PAGE_H_
#define HVD_TIMELINE_PAGE_PAGE_H_

#include <string>
#include <string_view>

namespace hvd {

// `page`, embedded by hvd_embed_page, with `json` in place of its first "@REPORT@". Texts in the
// JSON cannot end the script that it is in.
std::string FillPage(std::string_view page, std::string_view json);

}  // namespace hvd

#endif  // HVD_TIMELINE_PAGE_PAGE_H_
