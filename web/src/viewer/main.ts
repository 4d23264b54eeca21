/** Entry of the viewer's bundle. */

import "uplot/dist/uPlot.min.css";
import "../style/theme.css";
import "../style/page.css";
import "../style/answers.css";
import "../style/tables.css";
import "../style/figures.css";
import "../style/slides.css";
import "./style/shell.css";
import "./style/stages.css";
import "./style/screens.css";
import "./style/phone.css";
import { startViewer } from "./app";

document.documentElement.classList.add("live");
void startViewer();
