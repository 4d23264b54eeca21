/** Entry of the viewer's bundle. */

import "uplot/dist/uPlot.min.css";
import "../style/theme.css";
import "../style/page.css";
import "../style/answers.css";
import "../style/tables.css";
import "../style/figures.css";
import "../style/dots.css";
import "../style/slides.css";
import "./style/shell.css";
import "./style/stages.css";
import "./style/screens.css";
import "./style/phone.css";
import { startViewer } from "./app";

document.documentElement.classList.add("live");
// OpenSeadragon looks for a style sheet of this name and adds it where there is none, which the
// page's policy forbids: an element of that name that is no style sheet keeps it from trying.
const found = document.createElementNS(null, "style");
found.setAttribute("data-openseadragon-mobile-css", "");
document.head.append(found);
void startViewer();
