// A browser starts no worker from a page on disk. There, run the search's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      this.inside = this.frame.contentWindow
      this.inside.postMessage = data => this.deliver(window, this, data)
      const script = this.inside.document.createElement("script")
      script.src = address
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      this.inside.document.body.append(script)
    }
    postMessage(data) {
      if (this.ready) this.deliver(this.inside, this.inside, data)
      else this.waiting.push(structuredClone(data))
    }
    // Later and as a copy, as between threads.
    deliver(realm, target, data) {
      const copy = realm.structuredClone(data)
      setTimeout(() => {
        const event = new realm.MessageEvent("message", { data: copy })
        target.dispatchEvent(event)
        if (target === this) this.onmessage?.(event)
      })
    }
    terminate() {
      this.frame.remove()
    }
  }
}
