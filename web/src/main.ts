/** Entry of the bundle: reads the data in the page and starts its charts and tables. */

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/alarms.css";
import "./style/answers.css";
import "./style/first.css";
import "./style/tables.css";
import "./style/figures.css";
import "./style/dots.css";
import "./style/slides.css";
import "./style/cards.css";
import "./style/comparison.css";
import "./style/study.css";
import "./style/phone.css";
import "./style/print.css";
import { startAuditPage } from "./auditPage";
import { comparisonCharts } from "./figures/comparison";
import { startFragments } from "./page/fragments";
import { readPayload } from "./page/payload";
import { startTheme } from "./page/theme";

async function start(): Promise<void> {
  const payload = await readPayload();
  document.documentElement.classList.add("live");
  startTheme();
  startFragments();
  if (payload.kind === "audit") startAuditPage(payload);
  else if (payload.kind === "comparison") comparisonCharts(payload);
}

void start();
