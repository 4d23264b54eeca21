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
import { h } from "../page/dom";
import { startViewer } from "./app";

document.documentElement.classList.add("live");
// OpenSeadragon looks for a style sheet of this name and adds it where there is none; the page's
// policy forbids style sheets inside the page, so that it must find one, if only an empty one.
document.head.append(h("style", { type: "text/plain", "data-openseadragon-mobile-css": true }));
void startViewer();
