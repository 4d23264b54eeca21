// A browser starts no worker from a page on disk. There, run the search's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const inside = this.frame.contentWindow
      const script = inside.document.createElement("script")
      inside.postMessage = data => this.told(data)
      inside.importScripts = (...names) => names.forEach(name => this.load(name))
      script.src = address
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      inside.document.body.append(script)
    }
    load(name) {
      const script = this.frame.contentDocument.createElement("script")
      script.src = name
      this.frame.contentDocument.body.append(script)
    }
    postMessage(data) {
      if (!this.ready) return void this.waiting.push(data)
      const inside = this.frame.contentWindow
      inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }
    told(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      this.onmessage?.(event)
    }
    terminate() {
      this.frame.remove()
    }
  }
}
